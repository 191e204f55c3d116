//! Tests with artificial cycles and upward imports.

use super::faults;
use std::path::PathBuf;
use std::{fs, process};

const HOUSE: &str = "\
# Rooms
```
   crates/ats-top     what is above
   ats-left  one side      ats-right  the other
```
```
   crates/ats-left/src
   above, beside   what is above
   below
```
";

/// A house in a temporary folder, which is removed with it.
struct House(PathBuf);

impl House {
    fn new(name: &str, files: &[(&str, &str)]) -> Self {
        let root = std::env::temp_dir().join(format!("layers-{}-{name}", process::id()));
        let house = House(root);
        house.write("docs/inside/house.md", HOUSE);
        for (path, text) in files {
            house.write(&format!("crates/{path}"), text);
        }
        house
    }

    fn write(&self, path: &str, text: &str) {
        let path = self.0.join(path);
        fs::create_dir_all(path.parent().unwrap_or(&self.0)).expect("a folder");
        fs::write(path, text).expect("a file");
    }

    fn faults(&self) -> Vec<String> {
        faults(&self.0).expect("a house")
    }
}

impl Drop for House {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[test]
fn a_circle_is_found_through_re_exports_and_calls_of_macros() {
    let house = House::new(
        "circle",
        &[
            (
                "ats-top/src/lib.rs",
                "mod one; mod two; mod three; pub use three::Three;",
            ),
            (
                "ats-top/src/one.rs",
                "use crate::two; pub fn one() { two::two() }",
            ),
            (
                "ats-top/src/two.rs",
                "pub fn two() { print!(\"{}\", crate::Three::NUMBER) }",
            ),
            ("ats-top/src/three.rs", "mod four; pub use four::Three;"),
            (
                "ats-top/src/three/four.rs",
                "pub struct Three; impl Three { fn x() { crate::one::one() } }",
            ),
        ],
    );
    let faults = house.faults();
    assert_eq!(faults.len(), 1, "{faults:?}");
    let text = "circle of 3 files in crates/ats-top/src:\n  one.rs -> two.rs: two\n  \
                two.rs -> three/four.rs: NUMBER\n  three/four.rs -> one.rs: one";
    assert_eq!(faults[0], text);
}

#[test]
fn parents_and_children_may_not_need_each_other() {
    let house = House::new(
        "parents",
        &[
            ("ats-top/src/lib.rs", "mod one;"),
            (
                "ats-top/src/one.rs",
                "mod two; pub use two::Two; pub struct One(Two);",
            ),
            (
                "ats-top/src/one/two.rs",
                "use super::*; pub struct Two(Option<Box<One>>);",
            ),
        ],
    );
    assert_eq!(house.faults().len(), 1);
}

#[test]
fn modules_re_exports_and_tests_make_no_circle() {
    let house = House::new(
        "none",
        &[
            (
                "ats-top/src/lib.rs",
                "mod one; pub use one::{One, two::Two};",
            ),
            (
                "ats-top/src/one.rs",
                "pub mod two; pub use two::Two; pub struct One;",
            ),
            (
                "ats-top/src/one/two.rs",
                "use super::One; pub struct Two(One); #[cfg(all(test, unix))] mod tests;
             #[cfg(test)] mod more { use crate::three; } #[cfg(test)] use crate::three::Three;",
            ),
        ],
    );
    assert_eq!(house.faults(), [""; 0]);
}

#[test]
fn crates_may_point_down_only() {
    let house = House::new(
        "crates",
        &[
            ("ats-top/src/lib.rs", "use ats_left::Left;"),
            (
                "ats-left/src/lib.rs",
                "pub struct Left; fn up() { ats_top::top() }",
            ),
            (
                "ats-right/src/lib.rs",
                "use ats_left::Left; #[cfg(test)] use ats_top::x;",
            ),
            ("ats-other/src/lib.rs", "use ats_left::Left;"),
        ],
    );
    let expected = [
        "points up: crates/ats-left/src/lib.rs -> ats-top",
        "docs/inside/house.md does not draw ats-other: crates/ats-other/src/lib.rs -> ats-left",
        "points up: crates/ats-right/src/lib.rs -> ats-left",
    ];
    assert_eq!(house.faults(), expected);
}

#[test]
fn rooms_that_are_drawn_may_point_down_only() {
    let house = House::new(
        "rooms",
        &[
            ("ats-left/src/lib.rs", "mod above; mod below; mod beside;"),
            ("ats-left/src/above.rs", "use crate::below::Below;"),
            ("ats-left/src/beside.rs", "pub struct Beside;"),
            ("ats-left/src/below.rs", "mod deep; pub struct Below;"),
            ("ats-left/src/below/deep.rs", "use crate::beside::Beside;"),
        ],
    );
    let expected = "points up: crates/ats-left/src/below/deep.rs -> crates/ats-left/src/beside.rs";
    assert_eq!(house.faults(), [expected]);
}

#[test]
fn a_part_of_a_room_may_be_drawn_below_it() {
    let house = House::new(
        "parts",
        &[
            ("ats-left/src/lib.rs", "mod above; mod below; mod beside;"),
            (
                "ats-left/src/above.rs",
                "mod state; use crate::below::Below; pub use state::State; struct Above(State);",
            ),
            ("ats-left/src/above/state.rs", "pub struct State;"),
            (
                "ats-left/src/below.rs",
                "use crate::above::State; pub struct Below(State);",
            ),
            ("ats-left/src/beside.rs", "use crate::above::State;"),
        ],
    );
    let up = "points up: crates/ats-left/src/below.rs -> crates/ats-left/src/above/state.rs";
    let beside = "points up: crates/ats-left/src/beside.rs -> crates/ats-left/src/above/state.rs";
    assert_eq!(house.faults(), [up, beside]);
    let lower = HOUSE.replace("   below\n", "   below\n   above/state\n");
    house.write("docs/inside/house.md", &lower);
    assert_eq!(house.faults(), [""; 0]);
}

//! Tests with artificial cycles and upward imports.

use super::{faults, floors, imports};
use std::path::PathBuf;
use std::{fs, process};

const HOUSE: &str = "\
# Rooms
```
   crates/ats-top     what is above
   ats-left  one side      ats-right  the other
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
fn rooms_may_not_point_at_each_other() {
    let house = House::new(
        "rooms",
        &[
            ("ats-left/src/lib.rs", "mod above; mod below; mod beside;"),
            (
                "ats-left/src/above.rs",
                "mod part; use crate::below::Below;",
            ),
            ("ats-left/src/above/part.rs", "pub struct Part;"),
            ("ats-left/src/below.rs", "pub struct Below;"),
            ("ats-left/src/beside.rs", "use crate::above::part::Part;"),
        ],
    );
    assert_eq!(house.faults(), [""; 0]);
    let imports = imports::read(&house.0.join("crates/ats-left/src")).expect("a crate");
    assert_eq!(
        floors(&imports),
        [vec!["beside"], vec!["above"], vec!["below"]]
    );
    house.write(
        "crates/ats-left/src/below.rs",
        "use crate::above::part::Part; pub struct Below;",
    );
    let circle = "circle of rooms in crates/ats-left/src/: above, below\n  \
                  above.rs -> below.rs\n  below.rs -> above/part.rs";
    assert_eq!(house.faults(), [circle]);
}

#[test]
fn rooms_of_a_folder_may_not_point_at_each_other() {
    let house = House::new(
        "folders",
        &[
            ("ats-left/src/lib.rs", "mod above;"),
            ("ats-left/src/above.rs", "mod left; mod right;"),
            (
                "ats-left/src/above/left.rs",
                "mod deep; use super::right::Right;",
            ),
            ("ats-left/src/above/left/deep.rs", "pub struct Deep;"),
            (
                "ats-left/src/above/right.rs",
                "use super::left::deep::Deep; pub struct Right;",
            ),
        ],
    );
    let circle = "circle of rooms in crates/ats-left/src/above: left, right\n  \
                  above/left.rs -> above/right.rs\n  above/right.rs -> above/left/deep.rs";
    assert_eq!(house.faults(), [circle]);
}

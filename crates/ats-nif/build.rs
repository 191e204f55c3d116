//! Link arguments of the NIF library.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    if env::var("CARGO_CFG_TARGET_ENV").as_deref() == Ok("musl") {
        link_unwinder();
    }
    match env::var("CARGO_CFG_TARGET_OS").as_deref() {
        // The VM unloads a library whose module is purged. Rust code must not vanish: threads may
        // still run destructors of thread-locals, and deferred closures point into it. So unloading
        // only ever drops the VM's handle.
        Ok("linux" | "freebsd") => println!("cargo:rustc-cdylib-link-arg=-Wl,-z,nodelete"),
        // The functions of the VM are resolved when the library is loaded into it.
        Ok("macos") => {
            println!("cargo:rustc-cdylib-link-arg=-undefined");
            println!("cargo:rustc-cdylib-link-arg=dynamic_lookup");
        }
        _ => {}
    }
}

/// Links the stack unwinder into the library, because small systems with musl have no `libgcc_s`.
/// The compiler asks for `libgcc_s` by name in each library that is linked dynamically, so a linker
/// script of that name, which the linker finds first, names the static one instead.
fn link_unwinder() {
    let folder = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets it")).join("unwinder");
    let library = match unwinder_of_rust() {
        Some(path) => format!("\"{}\"", path.display()),
        // The C compiler's own, where Rust comes without one, as in the packages of distributions.
        None => "-lgcc_eh".into(),
    };
    let written = fs::create_dir_all(&folder)
        .and_then(|()| fs::write(folder.join("libgcc_s.so"), format!("INPUT({library})\n")));
    written.expect("the folder of this build can be written to");
    println!("cargo:rustc-cdylib-link-arg=-L{}", folder.display());
}

/// Returns the path of the static unwinder that comes with Rust for the target.
fn unwinder_of_rust() -> Option<PathBuf> {
    let (rustc, target) = (env::var_os("RUSTC")?, env::var_os("TARGET")?);
    let mut rustc = Command::new(rustc);
    let told = rustc
        .args(["--print", "target-libdir", "--target"])
        .arg(target);
    let folder = String::from_utf8(told.output().ok()?.stdout).ok()?;
    let path = Path::new(folder.trim()).join("self-contained/libunwind.a");
    path.is_file().then_some(path)
}

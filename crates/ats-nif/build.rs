//! Link arguments of the NIF library.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    match std::env::var("CARGO_CFG_TARGET_OS").as_deref() {
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

//! Links the program so that it needs less memory.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    // The addresses in a program that can be loaded anywhere are set when it starts. In their packed form the list of their
    // places has a twentieth of its size, all of which would be read and stay in memory.
    if std::env::var("CARGO_CFG_TARGET_ENV").as_deref() == Ok("gnu") {
        println!("cargo:rustc-link-arg-bins=-Wl,-z,pack-relative-relocs");
    }
}

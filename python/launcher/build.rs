//! Makes the stand-ins for Python visible to the module that the launcher loads.

#[expect(
    clippy::disallowed_methods,
    reason = "Cargo names the target in a variable"
)]
fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    if std::env::var("CARGO_CFG_TARGET_OS").as_deref() == Ok("linux") {
        println!("cargo::rustc-link-arg-bins=-Wl,--export-dynamic");
    }
}

//! Compiles the C++ shim over RocksDB.
fn main() {
    println!("cargo:rerun-if-changed=build.rs");
}

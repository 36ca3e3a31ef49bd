//! Compiles the C++ shim over RocksDB (`native/*.cc`) against the headers inside the crate librocksdb-sys.
//!
//! The library itself comes from that crate: built by it, or found through `ROCKSDB_LIB_DIR`. Either way its classes
//! must look the same from here, so the shim is compiled with the same definitions and standard.
use std::env;
use std::path::PathBuf;

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    for file in ["shim.h", "cache.h", "database.h", "options.h", "shim.cc", "write.cc"] {
        println!("cargo:rerun-if-changed=native/{file}");
    }
    println!("cargo:rerun-if-env-changed=ROCKSDB_CXX_STD");
    // Elsewhere the library compiles without its native part and answers `UnsupportedPlatform`.
    if env::var("CARGO_CFG_TARGET_OS").as_deref() == Ok("linux") {
        compile_shim();
    }
}

fn compile_shim() {
    let Some(rocksdb) = env::var_os("DEP_ROCKSDB_CARGO_MANIFEST_DIR").map(PathBuf::from) else {
        println!("cargo:error=librocksdb-sys does not say where its headers are (DEP_ROCKSDB_CARGO_MANIFEST_DIR)");
        return;
    };
    let standard = env::var("ROCKSDB_CXX_STD").unwrap_or_else(|_| "c++20".to_owned());
    let mut build = cc::Build::new();
    build
        .cpp(true)
        .file("native/shim.cc")
        .file("native/write.cc")
        .flag("-isystem")
        .flag(rocksdb.join("rocksdb/include"))
        .flag(format!("-std={}", standard.trim_start_matches("-std=")))
        .flag("-include")
        .flag("cstdint")
        .opt_level(2)
        .debug(false);
    // As in librocksdb-sys' own build: some change the layout of classes.
    for (name, value) in [
        ("NDEBUG", Some("1")),
        ("OS_LINUX", None),
        ("ROCKSDB_PLATFORM_POSIX", None),
        ("ROCKSDB_LIB_IO_POSIX", None),
        ("HAVE_ALIGNED_NEW", None),
        ("HAVE_UINT128_EXTENSION", None),
    ] {
        build.define(name, value);
    }
    build.compile("plimsoll_native");
}

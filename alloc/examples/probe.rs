//! The smallest program with the allocator: says whether it is in force, and what it knows about the process.
//!
//! `cargo run -p plimsoll-alloc --example probe`

use plimsoll_alloc::{Module, bind_home, committed_all, probe, resident_scan, rss_identity, scope};
use std::io::Write;

plimsoll_alloc::install!();

fn main() -> std::io::Result<()> {
    let mut out = std::io::stdout().lock();
    if let Err(error) = probe() {
        writeln!(out, "not installed: {error}")?;
        std::process::exit(1);
    }
    let store = {
        let _store = scope(Module::Store);
        vec![1u8; 10 << 20]
    };
    let cache = std::thread::spawn(|| bind_home(Module::Cache).map(|()| vec![2u8; 20 << 20])).join();
    let (committed, resident) = (committed_all(), resident_scan().map_err(std::io::Error::other)?);
    writeln!(out, "{:12} {:>12} {:>12}", "module", "committed", "resident")?;
    for module in Module::ALL {
        let i = module.index();
        writeln!(out, "{module:12} {:>12} {:>12}", committed[i], resident.modules[i])?;
    }
    let rss = rss_identity().map_err(std::io::Error::other)?;
    writeln!(out, "anonymous {} unexplained {} file {}", rss.anonymous, rss.unexplained(), rss.file)?;
    drop((store, cache));
    Ok(())
}

//! The program of a stranger: counts words with the Driver, without a broker.
use plimsoll::prelude::*;

plimsoll::install_allocator!();

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let builder = StreamsBuilder::new();
    builder
        .stream("lines", Consumed::values(Utf8))
        .flat_map_values(Utf8, |line, out| {
            for word in line.split_whitespace() {
                out.push(word);
            }
        })
        .group_by(Utf8, |_, word| word)
        .count(Materialized::named("counts"))
        .to_stream()
        .to("word-counts");
    println!("to be written against the Driver");
    Ok(())
}

//! The program of a stranger: counts words with the Driver, without a broker.
use plimsoll::prelude::*;
use plimsoll::testing::Driver;

plimsoll_alloc::install!();

fn main() -> Result<(), Box<dyn std::error::Error>> {
    plimsoll_alloc::probe()?;
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

    let driver = Driver::new(&builder.build()?)?;
    driver.input("lines", Utf8, Utf8).pipe_value("all is lost or nothing is lost")?;
    let counts = driver.store("counts", Utf8, I64)?;
    let mut words = Vec::new();
    for word in ["all", "is", "lost", "nothing"] {
        words.push(format!("{word}={}", counts.get(word)?.unwrap_or(0)));
    }
    println!("{}", words.join(" "));
    Ok(())
}

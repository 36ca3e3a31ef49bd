//! Joins in which tables take part: Apache Kafka's own scenario tables (one key, with records out of order).
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
use plimsoll::prelude::*;
use plimsoll::testing::Driver;

/// Side, value (`-`: null) and time.
const INPUT: &str = "L- 1,R- 2,LA 3,Ra 4,LB 5,Rb 6,L- 7,R- 8,LC 9,Rc 10,R- 11,L- 12,R- 13,Rd 7,LD 6,L- 2,R- 3,Re 14,\
                     LE 15,L- 10,R- 9,LF 4,Rf 3";

fn text() -> Consumed<Utf8, Utf8> {
    Consumed::with(Utf8, Utf8)
}

/// What each record of the input makes: `value@time`, nothing as `.`, several joined by `+`.
fn run(builder: StreamsBuilder) -> String {
    let topology = builder.build().unwrap();
    let reads_right = topology.describe().contains("[right]");
    let driver = Driver::options().application_id("app").build(&topology).unwrap();
    let mut all = Vec::new();
    for record in INPUT.split(',') {
        let (side, rest) = record.split_at(1);
        let (value, time) = rest.split_once(' ').unwrap();
        let value = (value != "-").then_some(value.as_bytes());
        let topic = if side == "L" { "left" } else { "right" };
        let piped = driver.pipe(topic, Some(b"k"), value, time.parse().unwrap());
        assert!(piped.is_ok() || !reads_right, "{piped:?}");
        let written = std::iter::from_fn(|| driver.read_raw("out")).map(|r| {
            let value = r.value.map_or("-".to_owned(), |v| String::from_utf8(v).unwrap());
            format!("{value}@{}", r.timestamp)
        });
        let written: Vec<_> = written.collect();
        all.push(if written.is_empty() { ".".to_owned() } else { written.join("+") });
    }
    all.join(" ")
}

fn or_null(value: Option<&str>) -> &str {
    value.unwrap_or("null")
}

/// The two tables, and a store for the result, without caches.
fn tables() -> (StreamsBuilder, KTable<Utf8, Utf8>, KTable<Utf8, Utf8>, Materialized) {
    let builder = StreamsBuilder::new();
    let kept = |name| Materialized::named(name).caching(false).logging(false);
    let left = builder.table_with("left", text(), kept("left"));
    let right = builder.table_with("right", text(), kept("right"));
    (builder, left, right, kept("joined"))
}

#[test]
fn a_stream_is_joined_with_what_the_table_has_at_that_moment() {
    let builder = StreamsBuilder::new();
    let stream = builder.stream("left", Consumed::with(Utf8, Opt(Utf8)));
    let table = builder.table("right", text());
    stream.join_table(&table, Text, |l, r| format!("{}-{r}", or_null(l))).to("out");
    assert_eq!(run(builder), ". . . . B-a@5 . . . . . . . . . D-d@6 . . . E-e@15 . . . .");
}

#[test]
fn a_left_join_with_a_table_answers_each_record_that_has_a_value() {
    let builder = StreamsBuilder::new();
    let stream = builder.stream("left", Consumed::with(Utf8, Opt(Utf8)));
    let table = builder.table("right", text());
    stream.left_join_table(&table, Text, |l, r| format!("{}-{}", or_null(l), or_null(r))).to("out");
    let expected = ". . A-null@3 . B-a@5 . . . C-null@9 . . . . . D-d@6 . . . E-e@15 . . F-null@4 .";
    assert_eq!(run(builder), expected);
}

#[test]
fn an_inner_join_of_tables_has_a_row_where_both_have() {
    let (builder, left, right, kept) = tables();
    left.join_with(&right, Text, kept, |l, r| format!("{l}-{r}")).to_stream().to("out");
    let expected = ". . . A-a@4 B-a@5 B-b@6 -@7 . . C-c@10 -@11 . . . D-d@7 -@7 . . E-e@15 -@14 . . F-f@4";
    assert_eq!(run(builder), expected);
}

#[test]
fn a_left_join_of_tables_has_a_row_where_the_left_has() {
    let (builder, left, right, kept) = tables();
    left.left_join_with(&right, Text, kept, |l, r| format!("{l}-{}", or_null(r))).to_stream().to("out");
    let expected = ". . A-null@3 A-a@4 B-a@5 B-b@6 -@7 . C-null@9 C-c@10 C-null@11 -@12 . . D-d@7 -@7 . . E-e@15 -@14 \
                    . F-null@4 F-f@4";
    assert_eq!(run(builder), expected);
}

#[test]
fn an_outer_join_of_tables_has_a_row_where_one_has() {
    let (builder, left, right, kept) = tables();
    left.outer_join_with(&right, Text, kept, |l, r| format!("{}-{}", or_null(l), or_null(r))).to_stream().to("out");
    let expected = ". . A-null@3 A-a@4 B-a@5 B-b@6 null-b@7 -@8 C-null@9 C-c@10 C-null@11 -@12 . null-d@7 D-d@7 \
                    null-d@7 -@3 null-e@14 E-e@15 null-e@14 -@9 F-null@4 F-f@4";
    assert_eq!(run(builder), expected);
}

#[test]
fn a_grouped_table_takes_the_old_value_out_and_puts_the_new_one_in() {
    let builder = StreamsBuilder::new();
    let letters = builder.table("left", text()).group_by(Utf8, Utf8, |_, v| (v, v));
    let sums = letters.aggregate(
        Text,
        Materialized::named("sums"),
        String::new,
        |_, v, sum| sum.push_str(&format!("+{v}")),
        |_, v, sum| sum.push_str(&format!("-{v}")),
    );
    sums.to_stream().to("out");
    let expected = ". . +A@3 . +A-A@5++B@5 . +B-B@7 . +C@9 . . +C-C@12 . . +D@6 +D-D@6 . . +E@15 +E-E@15 . +F@4 .";
    assert_eq!(run(builder), expected);
}

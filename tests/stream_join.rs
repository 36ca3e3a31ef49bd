//! Stream-stream joins as Apache Kafka 4.3.1 answers them: the tables of its `StreamStreamJoinIntegrationTest`, and
//! scenarios answered by its own `TopologyTestDriver`, changelogs in hex included.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
use plimsoll::prelude::*;
use plimsoll::testing::Driver;
use std::time::Duration;

type Nullable = Opt<Utf8>;
type Input<'i> = (&'i str, Option<&'i str>, Option<&'i str>, i64);

const NULLABLE: Nullable = Opt(Utf8);

fn stream(builder: &StreamsBuilder, topic: &str) -> KStream<Nullable, Nullable> {
    builder.stream(topic, Consumed::with(NULLABLE, NULLABLE))
}

fn both(left: Option<&str>, right: Option<&str>, between: &str) -> String {
    format!("{}{between}{}", left.unwrap_or("null"), right.unwrap_or("null"))
}

fn ms(time: u64) -> Duration {
    Duration::from_millis(time)
}

fn ten_seconds() -> JoinWindows {
    JoinWindows::of_time_difference_and_grace(Duration::from_secs(10), Duration::from_secs(24 * 3600))
}

/// What each record makes, as `key:value@time`.
fn answers(driver: &Driver, inputs: &[Input<'_>]) -> Vec<Vec<String>> {
    let text = |bytes: Option<Vec<u8>>| bytes.map_or("null".to_owned(), |bytes| String::from_utf8(bytes).unwrap());
    let one = |(topic, key, value, time): &Input<'_>| {
        driver.pipe(topic, key.map(str::as_bytes), value.map(str::as_bytes), *time).unwrap();
        let mut made = Vec::new();
        while let Some(out) = driver.read_raw("out") {
            made.push(format!("{}:{}@{}", text(out.key), text(out.value), out.timestamp));
        }
        made
    };
    inputs.iter().map(one).collect()
}

/// A changelog as `key=value@time`, in hex.
fn changelog(driver: &Driver, store: &str) -> Vec<String> {
    let hex = |bytes: Option<Vec<u8>>| {
        bytes.map_or("null".to_owned(), |bytes| bytes.iter().map(|byte| format!("{byte:02x}")).collect())
    };
    let mut log = Vec::new();
    while let Some(out) = driver.read_raw(&format!("app-{store}-changelog")) {
        log.push(format!("{}={}@{}", hex(out.key), hex(out.value), out.timestamp));
    }
    log
}

/// Kafka's 17 records without any out of order: one key, two of null.
fn kafkas_records() -> Vec<Input<'static>> {
    let sides = "LRLRLRLRLRRLRRLLR".chars();
    let values = ["", "", "A", "a", "B", "b", "", "", "C", "c", "", "", "", "d", "D", "E", "e"];
    let record = |((time, side), value): ((i64, char), &'static str)| {
        let topic = if side == 'L' { "left" } else { "right" };
        let key = if time < 16 { Some("0") } else { None };
        (topic, key, Some(value).filter(|value| !value.is_empty()), time)
    };
    (1..).zip(sides).zip(values).map(record).collect()
}

/// What Kafka's inner, left and outer join have in common; the last two records have null keys.
fn kafkas_answers(left_alone: &[&str], right_alone: &[&str]) -> Vec<Vec<String>> {
    let rows: [&[&str]; 15] = [
        &[],
        &[],
        &[],
        &["A-a@4"],
        &["B-a@5"],
        &["A-b@6", "B-b@6"],
        &[],
        &[],
        &["C-a@9", "C-b@9"],
        &["A-c@10", "B-c@10", "C-c@10"],
        &[],
        &[],
        &[],
        &["A-d@14", "B-d@14", "C-d@14"],
        &["D-a@15", "D-b@15", "D-c@15", "D-d@15"],
    ];
    let owned = |key: &str, row: &[&str]| row.iter().map(|value| format!("{key}:{value}")).collect::<Vec<_>>();
    let mut all: Vec<Vec<String>> = rows.iter().map(|row| owned("0", row)).collect();
    all.extend([owned("null", left_alone), owned("null", right_alone)]);
    all
}

#[test]
fn an_inner_join_is_kafkas_table() {
    let builder = StreamsBuilder::new();
    let (left, right) = (stream(&builder, "left"), stream(&builder, "right"));
    left.join_stream(&right, ten_seconds(), Text, |l, r| both(l, r, "-")).to("out");
    let driver = Driver::new(&builder.build().unwrap()).unwrap();
    assert_eq!(answers(&driver, &kafkas_records()), kafkas_answers(&[], &[]));
    assert_eq!(driver.records_dropped(), 9, "null values and null keys");
}

#[test]
fn a_left_join_is_kafkas_table() {
    let builder = StreamsBuilder::new();
    let (left, right) = (stream(&builder, "left"), stream(&builder, "right"));
    left.left_join_stream(&right, ten_seconds(), Text, |l, r| both(l, r.flatten(), "-")).to("out");
    let driver = Driver::new(&builder.build().unwrap()).unwrap();
    assert_eq!(answers(&driver, &kafkas_records()), kafkas_answers(&["E-null@16"], &[]));
}

#[test]
fn an_outer_join_is_kafkas_table() {
    let builder = StreamsBuilder::new();
    let (left, right) = (stream(&builder, "left"), stream(&builder, "right"));
    left.outer_join_stream(&right, ten_seconds(), Text, |l, r| both(l.flatten(), r.flatten(), "-")).to("out");
    let driver = Driver::new(&builder.build().unwrap()).unwrap();
    assert_eq!(answers(&driver, &kafkas_records()), kafkas_answers(&["E-null@16"], &["null-e@17"]));
}

#[test]
fn a_stream_joined_with_itself_is_kafkas_table_with_one_window_and_with_two() {
    for optimization in [Optimization::ALL, Optimization::NONE] {
        let builder = StreamsBuilder::new();
        let left = stream(&builder, "left");
        left.join_stream(&left, ten_seconds(), Text, |l, r| both(l, r, "-")).to("out");
        let driver = Driver::new(&builder.build_with(optimization).unwrap()).unwrap();
        let values = [None, Some("A"), Some("B"), None, Some("C"), None, Some("D")];
        let inputs: Vec<Input<'_>> = (1..).zip(values).map(|(time, v)| ("left", Some("0"), v, time)).collect();
        let expected: [&[&str]; 7] = [
            &[],
            &["0:A-A@2"],
            &["0:B-A@3", "0:A-B@3", "0:B-B@3"],
            &[],
            &["0:C-A@5", "0:C-B@5", "0:A-C@5", "0:B-C@5", "0:C-C@5"],
            &[],
            &["0:D-A@7", "0:D-B@7", "0:D-C@7", "0:A-D@7", "0:B-D@7", "0:C-D@7", "0:D-D@7"],
        ];
        assert_eq!(answers(&driver, &inputs), expected, "{optimization:?}");
    }
}

const OUT_OF_ORDER: [Input<'static>; 6] = [
    ("in", Some("x"), Some("ab"), 1),
    ("in", Some("x"), Some("ac"), 3),
    ("in", Some("x"), Some("ad"), 2),
    ("in", Some("x"), None, 2),
    ("in", Some("x"), Some("ae"), 8),
    ("in", Some("x"), Some("ae"), 0),
];

#[test]
fn a_self_join_behind_a_repartition_keeps_one_window_and_kafkas_order() {
    let builder = StreamsBuilder::new();
    let keyed = stream(&builder, "in").select_key(NULLABLE, |_, v| v.and_then(|v| v.get(..1)));
    let within = JoinWindows::of_time_difference_with_no_grace(ms(5));
    keyed.join_stream(&keyed, within, Text, |l, r| both(l, r, "/")).to("out");
    let topology = builder.build_with(Optimization::ALL).unwrap();
    assert_eq!(topology.describe(), include_str!("data/topology/self.txt"));
    let driver = Driver::options().application_id("app").build(&topology).unwrap();
    let expected: [&[&str]; 6] = [
        &["a:ab/ab@1"],
        &["a:ac/ab@3", "a:ab/ac@3", "a:ac/ac@3"],
        &["a:ad/ab@2", "a:ad/ac@3", "a:ab/ad@2", "a:ad/ad@2", "a:ac/ad@3"],
        &[],
        &["a:ae/ac@8", "a:ac/ae@8", "a:ae/ae@8"],
        &["a:ae/ab@1", "a:ae/ad@2", "a:ae/ac@3", "a:ae/ae@0", "a:ab/ae@1", "a:ad/ae@2", "a:ac/ae@3"],
    ];
    assert_eq!(answers(&driver, &OUT_OF_ORDER), expected);
    assert_eq!(
        changelog(&driver, "KSTREAM-JOINTHIS-0000000010-store"),
        [
            "61000000000000000100000001=6162@1",
            "61000000000000000300000002=6163@3",
            "61000000000000000200000003=6164@2",
            "61000000000000000800000004=6165@8",
            "61000000000000000000000005=6165@0"
        ]
    );
}

#[test]
fn the_windows_of_a_join_log_null_values_without_keeping_them() {
    let builder = StreamsBuilder::new();
    let input = stream(&builder, "in");
    let within = JoinWindows::of_time_difference_with_no_grace(ms(5));
    input.join_stream(&input, within, Text, |l, r| both(l, r, "/")).to("out");
    let topology = builder.build().unwrap();
    assert_eq!(topology.describe(), include_str!("data/topology/self-off.txt"));
    let driver = Driver::options().application_id("app").build(&topology).unwrap();
    answers(&driver, &OUT_OF_ORDER);
    let expected = [
        "78000000000000000100000001=6162@1",
        "78000000000000000300000002=6163@3",
        "78000000000000000200000003=6164@2",
        "78000000000000000200000004=null@2",
        "78000000000000000800000005=6165@8",
        "78000000000000000000000006=6165@0",
    ];
    assert_eq!(changelog(&driver, "KSTREAM-JOINTHIS-0000000003-store"), expected);
    assert_eq!(changelog(&driver, "KSTREAM-JOINOTHER-0000000004-store"), expected);
}

#[test]
fn an_outer_join_keeps_what_has_no_partner_until_its_window_closes() {
    let builder = StreamsBuilder::new();
    let (left, right) = (stream(&builder, "in1"), stream(&builder, "in2").peek(|_, _| ()));
    let within = JoinWindows::of_time_difference_with_no_grace(ms(10)).after(ms(7));
    left.outer_join_stream(&right, within, Text, |l, r| both(l.flatten(), r.flatten(), "/")).to("out");
    let driver = Driver::options().application_id("app").build(&builder.build().unwrap()).unwrap();
    let inputs = [
        ("in2", Some("b"), Some("ab"), 1),
        ("in1", Some("K"), None, 6),
        ("in2", Some("ab"), Some("abc d"), 8),
        ("in1", Some("b"), Some("xyz"), 8),
        ("in2", Some("K"), Some("abc d"), 10),
        ("in2", Some("b"), Some("aa"), 10),
        ("in1", Some("K"), Some("b"), 0),
        ("in1", Some("ab"), Some("a"), 15),
        ("in2", Some("c"), Some("a"), 17),
        ("in2", Some("c"), Some("a"), 17),
        ("in2", Some("K"), Some("abc d"), 17),
        ("in2", Some("b"), Some("bb cc"), 29),
        ("in2", Some("c"), None, 29),
    ];
    let mut expected: Vec<Vec<&str>> = vec![Vec::new(); 13];
    expected[3] = vec!["b:xyz/ab@8"];
    expected[5] = vec!["b:xyz/aa@10"];
    expected[6] = vec!["K:b/null@0"];
    expected[7] = vec!["ab:a/abc d@15"];
    expected[11] = vec!["K:null/abc d@10", "K:null/abc d@17", "c:null/a@17", "c:null/a@17"];
    assert_eq!(answers(&driver, &inputs), expected);
    assert_eq!(
        changelog(&driver, "KSTREAM-OUTERSHARED-0000000005-store"),
        [
            "00000000000000010062=010000000100000003006162@1",
            "0000000000000008006162=010000000100000006006162632064@8",
            "00000000000000010062=null@8",
            "000000000000000a004b=010000000100000006006162632064@10",
            "0000000000000008006162=null@15",
            "00000000000000110063=0100000001000000020061@17",
            "00000000000000110063=0100000002000000020061000000020061@17",
            "0000000000000011004b=010000000100000006006162632064@17",
            "000000000000000a004b=null@29",
            "0000000000000011004b=null@29",
            "00000000000000110063=null@29",
            "000000000000001d0062=010000000100000006006262206363@29"
        ]
    );
}

#[test]
fn headers_go_into_the_windows_changelog() {
    let builder = StreamsBuilder::new();
    let (left, right) = (stream(&builder, "in1"), stream(&builder, "in2"));
    let within = JoinWindows::of_time_difference_with_no_grace(ms(10));
    left.join_stream(&right, within, Text, |l, r| both(l, r, "/")).to("out");
    let driver = Driver::options().application_id("app").build(&builder.build().unwrap()).unwrap();
    driver.pipe_with_headers("in1", Some(b"k"), Some(b"v"), 1, &[("trace", b"b")]).unwrap();
    let logged = driver.read_raw("app-KSTREAM-JOINTHIS-0000000004-store-changelog").unwrap();
    assert_eq!(logged.headers, [("trace".to_owned(), Some(b"b".to_vec()))]);
}

#[test]
fn a_left_join_below_a_repartition_gets_null_keys() {
    let builder = StreamsBuilder::new();
    let first = |v: Option<&'_ str>| v.and_then(|v| v.get(..1)).map(str::to_owned);
    let keyed = stream(&builder, "in").select_key(Opt(Text), move |_, v| first(v));
    let wide = keyed.repartition(Repartitioned::new().named("wide"));
    let other = builder.stream("in2", Consumed::with(Opt(Text), NULLABLE));
    let within = JoinWindows::of_time_difference_with_no_grace(ms(5));
    wide.left_join_stream(&other, within, Text, |l, r| both(l, r.flatten(), "/")).to("out");
    let topology = builder.build().unwrap();
    assert_eq!(topology.describe(), include_str!("data/topology/null-keys.txt"));
    let driver = Driver::new(&topology).unwrap();
    let inputs = [("in", Some("x"), Some(""), 1), ("in", Some("x"), Some("ac"), 3)];
    assert_eq!(answers(&driver, &inputs), [vec!["null:/null@1"], Vec::new()]);
}

fn joined_after_select(optimization: Optimization) -> String {
    let builder = StreamsBuilder::new();
    let left = stream(&builder, "in").select_key(NULLABLE, |_, v| v.and_then(|v| v.get(..1)));
    let right = stream(&builder, "in2").select_key(NULLABLE, |_, v| v.and_then(|v| v.get(..1)));
    let within = JoinWindows::of_time_difference_with_no_grace(ms(5));
    let named = StreamJoined::named("jj");
    let inner = left.join_stream_with(&right, within, named, Text, |l, r| both(l, r, "/"));
    let outer = left.outer_join_stream(&right, within, Text, |l, r| both(l.flatten(), r.flatten(), "/"));
    if optimization == Optimization::ALL {
        right.group_by_key().count(Materialized::new());
    } else {
        left.join_stream(&right, within, Text, |l, r| both(l, r, "/"));
    }
    inner.to("out");
    outer.to("out2");
    builder.build_with(optimization).unwrap().describe()
}

#[test]
fn joins_without_a_name_share_the_repartition_of_an_earlier_one() {
    assert_eq!(joined_after_select(Optimization::NONE), include_str!("data/topology/join-after-select-off.txt"));
}

#[test]
fn the_repartitions_of_joins_and_groupings_are_merged() {
    assert_eq!(joined_after_select(Optimization::ALL), include_str!("data/topology/join-after-select.txt"));
}

#[test]
fn a_topic_read_twice_and_joined_is_a_self_join() {
    let builder = StreamsBuilder::new();
    let (left, right) = (stream(&builder, "in"), stream(&builder, "in"));
    let within = JoinWindows::of_time_difference_with_no_grace(ms(5));
    left.left_join_stream(&right, within, Text, |l, r| both(l, r.flatten(), "/")).to("out");
    let topology = builder.build_with(Optimization::ALL).unwrap();
    assert_eq!(topology.describe(), include_str!("data/topology/self-source-twice.txt"));
}

#[test]
fn a_join_with_grace_waits_in_kafkas_buffer() {
    let builder = StreamsBuilder::new();
    let table = builder.table_with("tab", Consumed::with(Text, Text), Materialized::named("vt").versioned(ms(1_000)));
    let input = builder.stream("in", Consumed::with(Text, Text));
    let patient = Joined::named("gj").grace(ms(10));
    input.join_table_with(&table, Text, patient, |value, row| format!("{value}/{row}")).to("out");
    let topology = builder.build().unwrap();
    assert!(topology.describe().contains("Processor: gj (stores: [gj-Buffer, vt])"));
    let driver = Driver::options().application_id("app").build(&topology).unwrap();
    let piped = |topic: &str, key: &str, value: &str, time| answers(&driver, &[(topic, Some(key), Some(value), time)]);
    piped("tab", "a", "A", 1);
    assert_eq!(piped("in", "a", "x", 3), [Vec::<String>::new()]);
    driver.pipe_with_headers("in", Some(b"a"), Some(b"y"), 7, &[("trace", b"b")]).unwrap();
    assert!(driver.read_raw("out").is_none());
    driver.pipe("in", Some(b"b"), Some(b"z"), 20).unwrap();
    let first = driver.read_raw("out").unwrap();
    assert_eq!((first.value, first.timestamp, first.headers), (Some(b"x/A".to_vec()), 3, Vec::new()));
    let second = driver.read_raw("out").unwrap();
    assert_eq!((second.value, second.timestamp), (Some(b"y/A".to_vec()), 7));
    assert_eq!(second.headers, [("trace".to_owned(), Some(b"b".to_vec()))]);
    assert_eq!(piped("in", "a", "late", 2), [["a:late/A@2"]]);
    assert_eq!(piped("in", "a", "w", 12), [Vec::<String>::new()]);
    assert_eq!(piped("in", "a", "v", 31), [["a:w/A@12"]]);
    assert_eq!(
        changelog(&driver, "gj-Buffer")[..6],
        [
            "0000000000000000036100000001=0000000000000003000000000000000000000002696e0000000000000000ffffffffffffffff\
             00000001780000000000000000@-1",
            "0000000000000000076100000002=0000000000000007000000000000000100000002696e00000000000000010000000574726163\
             650000000162ffffffffffffffff00000001790000000000000000@-1",
            "0000000000000000146200000003=0000000000000014000000000000000200000002696e0000000000000000ffffffffffffffff\
             000000017a0000000000000000@-1",
            "0000000000000000036100000001=null@-1",
            "0000000000000000076100000002=null@-1",
            "00000000000000000c6100000004=000000000000000c000000000000000400000002696e0000000000000000ffffffffffffffff\
             00000001770000000000000000@-1"
        ]
    );
}

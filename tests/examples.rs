//! The examples answer what their texts say, against the driver.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
#![allow(clippy::duplicate_mod)] // what the examples share
use plimsoll::testing::Driver;

#[path = "../examples/hopping_alerts.rs"]
mod hopping_alerts;
#[path = "../examples/order_enrichment.rs"]
mod order_enrichment;
#[path = "../examples/own_codec.rs"]
mod own_codec;
#[path = "../examples/page_views_by_region.rs"]
mod page_views_by_region;
#[path = "../examples/processor_with_timer.rs"]
mod processor_with_timer;
#[path = "../examples/sessions.rs"]
mod sessions;
#[path = "../examples/word_count.rs"]
mod word_count;

/// What an example prints.
macro_rules! told {
    ($example:ident) => {
        $example::local(&Driver::new(&$example::topology().unwrap()).unwrap()).unwrap()
    };
}

#[test]
fn word_count_counts_words() {
    assert_eq!(told!(word_count), ["to: 1", "be: 1", "or: 1", "not: 1", "to: 2", "be: 2"]);
}

#[test]
fn page_views_are_counted_where_their_user_was_when_they_came() {
    assert_eq!(told!(page_views_by_region), ["europe: 1", "asia: 1", "unknown: 1", "europe: 2", "asia: 2"]);
}

#[test]
fn sums_are_told_by_stream_time_and_forgotten() {
    // The first record comes with the first call; ten seconds tell what came until then.
    assert_eq!(told!(processor_with_timer), ["at 1s a: 1", "at 10s a: 2", "at 10s b: 12", "at 25s b: 1"]);
}

#[test]
fn a_late_click_joins_two_visits() {
    let told = told!(sessions);
    assert_eq!(
        told,
        [
            "ann 0-0: 1 clicks",
            "ann 0-0: gone",
            "ann 0-10: 2 clicks",
            "ann 50-50: 1 clicks",
            "ann 0-10: gone",
            "ann 50-50: gone",
            "ann 0-50: 4 clicks",
        ]
    );
}

#[test]
fn a_closed_window_with_three_failures_is_an_alert() {
    assert_eq!(told!(hopping_alerts), ["ann: 4 failures from 0s to 60s", "ann: 3 failures from 30s to 90s"]);
}

#[test]
fn a_codec_of_ones_own_takes_twenty_lines() {
    assert_eq!(told!(own_codec), ["europe: 7", "asia: 8"]);
    let source = include_str!("../examples/own_codec.rs");
    let codec = source.split("// The codec begins.\n").nth(1).unwrap().split("// The codec ends.").next().unwrap();
    assert_eq!(codec.lines().filter(|line| !line.trim().is_empty()).count(), 20);
}

#[test]
fn orders_follow_their_customers() {
    assert_eq!(told!(order_enrichment), ["17: 30 for Ann", "18: 5 for Bob", "17: 30 for Ann Lee", "18: gone"]);
}

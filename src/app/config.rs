//! Settings by Kafka's names: which are known, which the plan owns, and how each is read.
use super::error::StartError;
use crate::budget;
use crate::topology::OffsetReset;
use crate::wire::Compression;
use crate::worker::settings::Settings;
use std::path::PathBuf;
use std::str::FromStr;

/// Settings that go to the control plane unchanged (librdkafka's names).
const CONTROL_PLANE: &[&str] = &[
    "session.timeout.ms",
    "heartbeat.interval.ms",
    "group.instance.id",
    "client.rack",
    "socket.connection.setup.timeout.ms",
    "broker.address.family",
];

/// Security settings: collected here, checked together where the connections are made.
const SECURITY_PREFIXES: &[&str] = &["ssl.", "sasl.", "security.", "enable.ssl.", "enable.sasl."];

fn invalid(key: &str, value: &str, expected: &'static str) -> StartError {
    StartError::InvalidSetting { key: key.to_owned(), value: value.to_owned(), expected }
}

fn number<T: FromStr + PartialOrd>(key: &str, value: &str, least: T, expected: &'static str) -> Result<T, StartError> {
    value.trim().parse().ok().filter(|n| *n >= least).ok_or_else(|| invalid(key, value, expected))
}

/// Applies one setting.
///
/// # Errors
/// [`StartError::OwnedByPlan`] for what the plan decides, [`StartError::UnknownSetting`],
/// [`StartError::InvalidSetting`].
pub(crate) fn apply(settings: &mut Settings, key: &str, value: &str) -> Result<(), StartError> {
    let plain = key
        .strip_prefix("producer.")
        .or_else(|| key.strip_prefix("consumer."))
        .or_else(|| key.strip_prefix("main.consumer."))
        .unwrap_or(key);
    if let Some(row) = budget::owned(plain) {
        return Err(StartError::OwnedByPlan { key: key.to_owned(), row: row.name() });
    }
    if let Some(topic_key) = key.strip_prefix("topic.") {
        settings.topic_configs.push((topic_key.to_owned(), value.to_owned()));
        return Ok(());
    }
    if SECURITY_PREFIXES.iter().any(|prefix| plain.starts_with(prefix)) {
        settings.security.push((plain.to_owned(), value.to_owned()));
        return Ok(());
    }
    if CONTROL_PLANE.contains(&plain) {
        settings.control_plane.push((plain.to_owned(), value.to_owned()));
        return Ok(());
    }
    apply_known(settings, plain, value)
}

fn apply_known(settings: &mut Settings, key: &str, value: &str) -> Result<(), StartError> {
    match key {
        "client.id" => settings.client_id = value.to_owned(),
        "num.stream.threads" => settings.threads = number(key, value, 1, "a number of threads, at least 1")?,
        "state.dir" => settings.state_dir = PathBuf::from(value),
        "commit.interval.ms" => settings.commit_interval_ms = number(key, value, 0, "milliseconds, at least 0")?,
        "max.task.idle.ms" => {
            settings.max_task_idle_ms = number(key, value, -1, "milliseconds; 0 waits for known lag, -1 never waits")?;
        }
        "task.timeout.ms" => settings.task_timeout_ms = number(key, value, 0, "milliseconds, at least 0")?,
        "auto.offset.reset" => settings.reset = reset(value).ok_or_else(|| invalid(key, value, RESETS))?,
        "max.poll.interval.ms" => {
            settings.max_poll_interval_ms = number(key, value, 1_000, "milliseconds, at least 1000")?;
        }
        "linger.ms" => settings.linger_ms = number(key, value, 0, "milliseconds, at least 0")?,
        "delivery.timeout.ms" => settings.delivery_timeout_ms = number(key, value, 1, "milliseconds, at least 1")?,
        "max.block.ms" => settings.max_block_ms = number(key, value, 0, "milliseconds, at least 0")?,
        "request.timeout.ms" => settings.request_timeout_ms = number(key, value, 1, "milliseconds, at least 1")?,
        "fetch.max.wait.ms" => settings.fetch_max_wait_ms = number(key, value, 0, "milliseconds, at least 0")?,
        "compression.type" => {
            settings.compression = match value {
                "none" => Compression::None,
                "gzip" => Compression::Gzip,
                "snappy" => Compression::Snappy,
                "lz4" => Compression::Lz4,
                "zstd" => Compression::Zstd,
                _ => return Err(invalid(key, value, "none, gzip, snappy, lz4 or zstd")),
            };
        }
        "compression.gzip.level" => set_level(settings, Compression::Gzip, key, value, "1 to 9, or -1")?,
        "compression.zstd.level" => set_level(settings, Compression::Zstd, key, value, "-131072 to 22")?,
        "compression.lz4.level" => {
            let expected = "9: of lz4 only the fast algorithm is written, which kafka's default names";
            set_level(settings, Compression::Lz4, key, value, expected)?;
        }
        "replication.factor" => {
            settings.replication_factor = number(key, value, -1, "a count, or -1 for the broker's")?
        }
        "processing.guarantee" => match value {
            "at_least_once" => {}
            "exactly_once_v2" => {
                return Err(StartError::NotOffered { what: "processing.guarantee=exactly_once_v2".to_owned() });
            }
            _ => return Err(invalid(key, value, "at_least_once")),
        },
        "group.protocol" => match value {
            "classic" => {}
            "consumer" | "streams" => {
                return Err(StartError::NotOffered { what: format!("group.protocol={value}") });
            }
            _ => return Err(invalid(key, value, "classic")),
        },
        _ => return Err(StartError::UnknownSetting { key: key.to_owned() }),
    }
    Ok(())
}

/// Notes a level of a codec; gzip's -1 is its default.
fn set_level(
    settings: &mut Settings,
    codec: Compression,
    key: &str,
    value: &str,
    expected: &'static str,
) -> Result<(), StartError> {
    let level: i32 = value.trim().parse().map_err(|_| invalid(key, value, expected))?;
    let default = codec == Compression::Gzip && level == -1;
    if !default && !codec.levels().is_some_and(|levels| levels.contains(&level)) {
        return Err(invalid(key, value, expected));
    }
    if let Some(place) = settings.compression_levels.iter_mut().find(|(known, _)| *known == codec) {
        place.1 = (!default).then_some(level);
    }
    Ok(())
}

const RESETS: &str = "earliest, latest or none";

fn reset(value: &str) -> Option<OffsetReset> {
    match value {
        "earliest" => Some(OffsetReset::Earliest),
        "latest" => Some(OffsetReset::Latest),
        "none" => Some(OffsetReset::None),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::app::builder::default_settings;

    fn refused(key: &str, value: &str) -> String {
        apply(&mut default_settings("app", "localhost:9092"), key, value).unwrap_err().to_string()
    }

    #[test]
    fn what_the_plan_owns_is_refused_by_the_name_of_its_row() {
        let text = refused("consumer.fetch.max.bytes", "1048576");
        assert!(text.contains("fetch.max.bytes") && text.contains("frame"), "{text}");
        let text = refused("buffer.memory", "1");
        assert!(text.contains("producer"), "{text}");
    }

    #[test]
    fn known_settings_are_read_with_kafka_s_names() {
        let mut settings = default_settings("app", "localhost:9092");
        let given = [
            ("commit.interval.ms", "100"),
            ("max.task.idle.ms", "-1"),
            ("task.timeout.ms", "0"),
            ("auto.offset.reset", "latest"),
        ];
        for (key, value) in given {
            apply(&mut settings, key, value).unwrap();
        }
        assert_eq!(settings.task_timeout_ms, 0);
        assert_eq!((settings.commit_interval_ms, settings.max_task_idle_ms), (100, -1));
        assert_eq!(settings.reset, OffsetReset::Latest);
        let levels =
            [("compression.type", "zstd"), ("compression.zstd.level", "-7"), ("producer.compression.gzip.level", "-1")];
        for (key, value) in levels {
            apply(&mut settings, key, value).unwrap();
        }
        assert_eq!((settings.compression, settings.compression_level()), (Compression::Zstd, Some(-7)));
        assert!(settings.compression_bytes() > 0);
        apply(&mut settings, "compression.type", "gzip").unwrap();
        assert_eq!((settings.compression, settings.compression_level()), (Compression::Gzip, None));
        for (key, value) in [
            ("compression.type", "brotli"),
            ("compression.gzip.level", "10"),
            ("compression.zstd.level", "23"),
            ("compression.lz4.level", "12"),
        ] {
            assert!(refused(key, value).contains(key), "{key}={value}");
        }
    }

    #[test]
    fn security_settings_are_kept_for_the_connections() {
        let mut settings = default_settings("app", "localhost:9092");
        for (key, value) in [("security.protocol", "ssl"), ("consumer.ssl.ca.location", "/ca"), ("sasl.username", "u")]
        {
            apply(&mut settings, key, value).unwrap();
        }
        let names: Vec<&str> = settings.security.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["security.protocol", "ssl.ca.location", "sasl.username"]);
    }

    #[test]
    fn unknown_wrong_and_not_yet_offered_settings_are_told_apart() {
        assert!(refused("no.such.thing", "1").contains("no.such.thing"));
        assert!(refused("commit.interval.ms", "soon").contains("milliseconds"));
        assert!(refused("processing.guarantee", "exactly_once_v2").contains("not offered"));
    }
}

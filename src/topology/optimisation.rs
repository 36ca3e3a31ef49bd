//! Which optimisations of a topology are wanted.
use std::str::FromStr;

/// Optimisations of a topology: what Kafka Streams' `topology.optimization` says. Topics and their names change with
/// them, so an application that runs already keeps what it was built with.
///
/// # Null
/// None of them changes what happens to nulls.
///
/// # Late
/// None of them changes when a record is late.
///
/// # Stores
/// With `reuse_ktable_source_topics` a table read from a topic has no changelog of its own: the topic is it. With
/// `merge_repartition_topics` operators below one change of the key share one repartition topic, where the types of
/// the records allow it. With `single_store_self_join` a stream joined with itself keeps one store.
///
/// # Java
/// `builder.build(props)` with `topology.optimization` set to `none`, `all` or a list.
///
/// ```
/// use plimsoll::prelude::*;
///
/// assert_eq!("all".parse(), Ok(Optimization::ALL));
/// let one: Optimization = "merge.repartition.topics".parse()?;
/// assert_eq!(one, Optimization { merge_repartition_topics: true, ..Optimization::NONE });
/// # Ok::<(), plimsoll::UnknownOptimization>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[allow(clippy::exhaustive_structs)] // three independent switches, as in Kafka Streams
pub struct Optimization {
    /// Tables read from a topic use it as their changelog.
    pub reuse_ktable_source_topics: bool,
    /// Repartition topics below one operator that changes the key become one.
    pub merge_repartition_topics: bool,
    /// A stream joined with itself keeps one store instead of two.
    pub single_store_self_join: bool,
}

/// The text is neither `none` nor `all` nor a list of optimisations.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("\"{name}\" is no optimisation; write none, all, or a list of {}", NAMES.join(", "))]
#[non_exhaustive]
pub struct UnknownOptimization {
    /// What is none.
    pub name: String,
}

const NAMES: [&str; 3] = ["reuse.ktable.source.topics", "merge.repartition.topics", "single.store.self.join"];

impl Optimization {
    /// None: the default.
    pub const NONE: Self =
        Self { reuse_ktable_source_topics: false, merge_repartition_topics: false, single_store_self_join: false };
    /// All.
    pub const ALL: Self =
        Self { reuse_ktable_source_topics: true, merge_repartition_topics: true, single_store_self_join: true };
}

impl FromStr for Optimization {
    type Err = UnknownOptimization;

    fn from_str(text: &str) -> Result<Self, UnknownOptimization> {
        match text.trim() {
            "none" => return Ok(Self::NONE),
            "all" => return Ok(Self::ALL),
            _ => {}
        }
        let mut wanted = Self::NONE;
        for name in text.split(',').map(str::trim) {
            match NAMES.iter().position(|known| *known == name) {
                Some(0) => wanted.reuse_ktable_source_topics = true,
                Some(1) => wanted.merge_repartition_topics = true,
                Some(_) => wanted.single_store_self_join = true,
                None => return Err(UnknownOptimization { name: name.to_owned() }),
            }
        }
        Ok(wanted)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_texts_are_those_of_kafka_streams() {
        assert_eq!("none".parse(), Ok(Optimization::NONE));
        let two = Optimization { single_store_self_join: true, merge_repartition_topics: true, ..Optimization::NONE };
        assert_eq!("single.store.self.join, merge.repartition.topics".parse(), Ok(two));
        let unknown = UnknownOptimization { name: "all".into() };
        assert_eq!("all,merge.repartition.topics".parse::<Optimization>(), Err(unknown));
    }
}

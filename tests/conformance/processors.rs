//! The processors of scenarios: one that keeps the last value of each key, two that tell the time.
use super::build::Building;
use super::datum::{Any, Datum, TEXT};
use super::handle::{Handle, Made, Node, Stop};
use plimsoll::prelude::*;
use std::time::Duration;

type Latest = KeyValueStore<Any, Any>;

/// Forwards a record only when its value differs from the key's last.
struct KeepsLatest(Latest);

impl Processor for KeepsLatest {
    type KIn = Any;
    type VIn = Any;
    type KOut = Any;
    type VOut = Any;

    fn process<'a>(&mut self, cx: &mut Context<'_, 'a, Self>, record: Record<'a, Any, Any>) -> Processed {
        if record.key.is_null() {
            return Ok(());
        }
        let latest = cx.store(&self.0)?;
        if latest.get(record.key)?.unwrap_or(Datum::Null) == *record.value {
            return Ok(());
        }
        latest.put(record.key, record.value)?;
        cx.forward(record)
    }
}

/// Forwards ("tick", the time) at each call.
struct Ticks(PunctuationType, Duration);

impl Processor for Ticks {
    type KIn = Any;
    type VIn = Any;
    type KOut = Any;
    type VOut = Any;

    fn init(&mut self, cx: &mut Init<'_, '_, Self>) -> Processed {
        cx.schedule(self.1, self.0, |_, cx, now| {
            let (key, value) = (Datum::Text("tick".to_owned()), Datum::Text(now.to_string()));
            cx.forward(Record::new(&key, &value, now))
        })?;
        Ok(())
    }

    fn process<'a>(&mut self, _: &mut Context<'_, 'a, Self>, _: Record<'a, Any, Any>) -> Processed {
        Ok(())
    }
}

pub fn process(building: &Building, node: Node<'_>) -> Made {
    let Handle::Stream(stream) = building.handle(node, "of")? else {
        return Err(Stop::Refused("process".to_owned()));
    };
    let every = node.duration("ms").unwrap_or(Duration::from_secs(1));
    let ticks = |by| stream.process(TEXT, TEXT, move || Ticks(by, every));
    Ok(Handle::Stream(match node.text("kind") {
        Some("latest") => {
            let name = node.text("store").unwrap_or_default();
            let store = building.builder.add_state_store(Stores::key_value(name, TEXT, TEXT));
            let how = Processing::new().stores(&[&store]);
            let (key, value) = (*stream.key_schema(), *stream.value_schema());
            stream.process_with(key, value, move || KeepsLatest(store.clone()), how)
        }
        Some("tick_stream") => ticks(PunctuationType::StreamTime),
        _ => ticks(PunctuationType::WallClock),
    }))
}

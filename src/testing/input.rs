//! Piping records into the topology.
use super::driver::Driver;
use super::error::DriverError;
use crate::codec::{Codec, Scratch};
use std::cell::RefCell;

/// A topic to pipe into, made by [`Driver::input`].
#[derive(Debug)]
pub struct InputTopic<'d, K, V> {
    pub(crate) driver: &'d Driver,
    pub(crate) topic: String,
    pub(crate) key: K,
    pub(crate) value: V,
    pub(crate) scratch: RefCell<(Scratch, Scratch)>,
}

impl<K: Codec, V: Codec> InputTopic<'_, K, V> {
    /// Pipes a record with the time of the wall clock.
    ///
    /// # Errors
    /// The task failed, or no source reads the topic.
    pub fn pipe(&self, key: K::View<'_>, value: V::View<'_>) -> Result<(), DriverError> {
        self.pipe_at(key, value, self.driver.wall_ms())
    }

    /// Pipes a record with this timestamp, milliseconds since the epoch.
    ///
    /// # Errors
    /// As [`pipe`](Self::pipe).
    pub fn pipe_at(&self, key: K::View<'_>, value: V::View<'_>, timestamp: i64) -> Result<(), DriverError> {
        let mut scratch = self.scratch.borrow_mut();
        let (keys, values) = &mut *scratch;
        let key = self.encode(&self.key, key, keys)?;
        let value = self.encode(&self.value, value, values)?;
        self.driver.pipe(&self.topic, key, value, timestamp)
    }

    /// Pipes a value without a key, with the time of the wall clock.
    ///
    /// # Errors
    /// As [`pipe`](Self::pipe).
    pub fn pipe_value(&self, value: V::View<'_>) -> Result<(), DriverError> {
        let value = self.encode(&self.value, value, &mut self.scratch.borrow_mut().1)?.map(<[u8]>::to_vec);
        self.driver.pipe(&self.topic, None, value.as_deref(), self.driver.wall_ms())
    }

    fn encode<'s, C: Codec>(
        &self,
        codec: &C,
        view: C::View<'_>,
        scratch: &'s mut Scratch,
    ) -> Result<Option<&'s [u8]>, DriverError> {
        scratch.clear();
        if C::is_null(view) {
            return Ok(None);
        }
        codec.encode(view, scratch);
        let refused = |error: crate::codec::ScratchFull| DriverError::Codec {
            what: self.topic.clone(),
            reason: error.to_string(),
        };
        scratch.check().map_err(refused)?;
        Ok(Some(scratch.bytes()))
    }
}

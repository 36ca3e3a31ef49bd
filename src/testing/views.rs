//! From a store's name to a look into it.
use super::driver::Driver;
use super::error::DriverError;
use super::store::StoreView;
use super::windows::{SessionStoreView, WindowStoreView};
use crate::base::id::StoreId;
use crate::node::StateStore;
use crate::store::kind::Rows;
use std::rc::Rc;

impl Driver {
    /// A key-value store to look into.
    ///
    /// # Errors
    /// The topology has none of this name, or it is of another kind.
    pub fn store<K, V>(&self, name: &str, key: K, value: V) -> Result<StoreView<K, V>, DriverError> {
        let store = self.found(name, |rows| matches!(rows, Rows::KeyValue))?;
        Ok(StoreView { store, key, value })
    }

    /// A window store to look into.
    ///
    /// ```
    /// use plimsoll::prelude::*;
    /// use plimsoll::testing::{Driver, DriverError};
    ///
    /// let builder = StreamsBuilder::new();
    /// let words = builder.stream("words", Consumed::with(Utf8, Utf8)).group_by_key();
    /// words.count(Materialized::named("counts"));
    /// let driver = Driver::new(&builder.build().unwrap())?;
    /// let error = driver.window_store("counts", Utf8, I64).unwrap_err();
    /// assert_eq!(error.to_string(), "store \"counts\" is a key-value store");
    /// # Ok::<(), DriverError>(())
    /// ```
    ///
    /// # Errors
    /// The topology has none of this name, or it is of another kind.
    pub fn window_store<K, V>(&self, name: &str, key: K, value: V) -> Result<WindowStoreView<K, V>, DriverError> {
        let store = self.found(name, |rows| matches!(rows, Rows::Window(_)))?;
        Ok(WindowStoreView { store, key, value })
    }

    /// A session store to look into.
    ///
    /// # Errors
    /// The topology has none of this name, or it is of another kind.
    pub fn session_store<K, V>(&self, name: &str, key: K, value: V) -> Result<SessionStoreView<K, V>, DriverError> {
        let store = self.found(name, |rows| matches!(rows, Rows::Session(_)))?;
        Ok(SessionStoreView { store, key, value })
    }

    pub(super) fn found(&self, name: &str, wanted: fn(&Rows) -> bool) -> Result<Rc<dyn StateStore>, DriverError> {
        let unknown = || DriverError::UnknownStore { name: name.to_owned() };
        let at = self.store_names.iter().position(|store| store == name);
        let id = StoreId(at.and_then(|at| u16::try_from(at).ok()).ok_or_else(unknown)?);
        let store = self.stores().find(|store| store.id() == id).ok_or_else(unknown)?;
        let kind = store.kind();
        if wanted(&kind.rows) {
            return Ok(Rc::clone(store));
        }
        Err(DriverError::WrongStore { name: name.to_owned(), kind: kind.in_words() })
    }
}

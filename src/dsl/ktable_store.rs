//! The store of a table, for processors.
use super::ktable::KTable;
use crate::codec::Codec;
use crate::node::{KeyValueStore, TableStore};

impl<K: Codec, V: Codec> KTable<K, V> {
    /// The table's store, for processors to look into: connect it by [`Processing::stores`](crate::Processing::stores).
    /// A table read from a topic is kept from now on. `None` if the table is computed from another one and was not
    /// given a name by [`Materialized`](crate::Materialized).
    ///
    /// # Null
    /// A key without a value has no row.
    /// # Late
    /// Does not apply.
    /// # Stores
    /// The table's.
    /// # Java
    /// `KTable.queryableStoreName()`, connected to a processor by that name.
    ///
    /// ```
    /// use plimsoll::prelude::*;
    /// use plimsoll::testing::Driver;
    ///
    /// /// Forwards each order with the price of its article.
    /// struct Price {
    ///     prices: TableStore<Utf8, I64>,
    /// }
    /// impl Processor for Price {
    ///     type KIn = Utf8;
    ///     type VIn = Utf8;
    ///     type KOut = Utf8;
    ///     type VOut = I64;
    ///     fn process<'a>(&mut self, cx: &mut Context<'_, 'a, Self>, order: Record<'a, Utf8, Utf8>) -> Processed {
    ///         let price = cx.store(&self.prices)?.get(order.value)?.unwrap_or(0);
    ///         cx.forward(order.with_value(price))
    ///     }
    /// }
    ///
    /// let builder = StreamsBuilder::new();
    /// let prices = builder.table_with("prices", Consumed::with(Utf8, I64), Materialized::named("prices"));
    /// let prices = prices.stored().expect("a table of a topic can be kept");
    /// let how = Processing::new().stores(&[&prices]);
    /// builder
    ///     .stream("orders", Consumed::with(Utf8, Utf8))
    ///     .process_with(Utf8, I64, move || Price { prices: prices.clone() }, how)
    ///     .to("priced");
    ///
    /// let driver = Driver::new(&builder.build().unwrap())?;
    /// driver.input("prices", Utf8, I64).pipe("apple", 3)?;
    /// driver.input("orders", Utf8, Utf8).pipe("ann", "apple")?;
    /// assert_eq!(driver.output("priced", Utf8, I64).read_pairs()?, [("ann".to_owned(), 3)]);
    /// # Ok::<(), plimsoll::testing::DriverError>(())
    /// ```
    pub fn stored(&self) -> Option<TableStore<K, V>> {
        let (id, name) = self.shelf.borrow_mut().own_store(self.at.0)?;
        Some(TableStore::new(KeyValueStore::new(id, &name, self.key.clone(), self.value.clone())))
    }
}

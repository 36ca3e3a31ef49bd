//! The store of a versioned table: what each key was over time.
//!
//! Owns the codec of the values; the versions themselves are kept as bytes, so that tables of all types share one
//! compiled store. Invariant: what is sent on says whether it is the latest of its key. Bound: two values in bytes.
//! Called by [`table`](super::table) alone.
use super::cx::Cx;
use super::fault::{Fault, Flow, Parked};
use super::keyvalue::{KeyValue, Put, Version, Versions, make_versioned};
use super::topic::TopicName;
use super::wiring::{MadeStore, MakeStore, WiringError};
use crate::base::id::{NodeId, StoreId};
use crate::codec::{Bytes, Codec, Scratch, Side};
use crate::store::kind::StoreKind;
use std::cell::RefCell;
use std::rc::Rc;

/// The typed store: an `Rc` of it is what wiring hands out.
pub(crate) struct History<V> {
    id: StoreId,
    value: V,
    versions: Versions<Bytes>,
    /// A value on its way into the store.
    encoded: RefCell<Scratch>,
    /// What a key had before.
    before: RefCell<Vec<u8>>,
}

/// Builds stores of this kind, which is a versioned one.
pub(crate) fn make_history<V: Codec>(value: V, kind: StoreKind) -> MakeStore {
    let MakeStore { kind, make } = make_versioned(Bytes, kind);
    let make = Box::new(move |w: &mut super::wiring::Wiring<'_>, id| {
        let made = make(w, id)?;
        let rows = made.typed.downcast_ref::<Rc<KeyValue<Version<Bytes>>>>().ok_or(WiringError::StoreType(id))?;
        let changelog = TopicName::Changelog(w.store_part(id)?.name.clone());
        let history = History {
            id,
            value: w.with_place(&changelog, Side::Value, |place| value.bind(place)),
            versions: Versions::new(Rc::clone(rows)),
            encoded: RefCell::new(Scratch::with_limit(w.settings().record_bytes)),
            before: RefCell::default(),
        };
        Ok(MadeStore { typed: Box::new(Rc::new(history)), ..made })
    });
    MakeStore { kind, make }
}

impl<V: Codec> History<V> {
    /// Lends `f` the value that a key had at a time, and since when.
    pub(crate) fn get_at<R>(
        &self,
        cx: &Cx<'_>,
        key: &[u8],
        at: i64,
        f: impl FnOnce(Option<(V::View<'_>, i64)>) -> R,
    ) -> Result<R, Fault> {
        self.versions.get_as_of(cx, key, at, |found| match found {
            None => Ok(f(None)),
            Some((bytes, time, _)) => {
                let value = self.value.decode(bytes).map_err(|error| self.unreadable(cx, error))?;
                Ok(f(Some((V::lend(&value), time))))
            }
        })?
    }

    /// Puts a version and sends it on with what was the latest before, if `wants_old`. One that is older than the
    /// history goes nowhere and is counted.
    pub(crate) fn put(
        &self,
        cx: &Cx<'_>,
        node: NodeId,
        key: &[u8],
        (value, time): (Option<V::View<'_>>, i64),
        wants_old: bool,
        send: impl FnOnce(&Cx<'_>, Option<V::View<'_>>) -> Flow,
    ) -> Flow {
        // Taken and put back: what is below may come here again.
        let mut before = self.before.take();
        before.clear();
        let keep = |found: Option<(&[u8], i64)>| found.map(|(bytes, _)| before.extend_from_slice(bytes)).is_some();
        let has_old = wants_old && self.versions.get(cx, key, keep)?;
        let put = self.encoded_put(cx, node, key, value, time)?;
        if put == Put::Dropped {
            cx.port.dropped(node);
            return Ok(());
        }
        let cx = Cx { latest: put == Put::Latest, ..*cx };
        if has_old {
            let old = self.value.decode(&before).map_err(|error| self.unreadable(&cx, error))?;
            send(&cx, Some(V::lend(&old)))?;
        } else {
            send(&cx, None)?;
        }
        *self.before.borrow_mut() = before;
        Ok(())
    }

    fn encoded_put(
        &self,
        cx: &Cx<'_>,
        node: NodeId,
        key: &[u8],
        value: Option<V::View<'_>>,
        time: i64,
    ) -> Result<Put, Fault> {
        let Some(value) = value else { return self.versions.put(cx, key, None, time) };
        let mut encoded = self.encoded.borrow_mut();
        encoded.clear();
        self.value.encode(value, &mut encoded);
        encoded.check().map_err(|full| cx.fault.park(Fault::TooLarge, Parked::TooLarge { node, full }))?;
        self.versions.put(cx, key, Some(encoded.bytes()), time)
    }

    fn unreadable(&self, cx: &Cx<'_>, error: crate::codec::DecodeError) -> Fault {
        cx.fault.park(Fault::Store, Parked::Stored { store: self.id, side: Side::Value, error })
    }
}

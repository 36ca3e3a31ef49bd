//! Names and versions of the APIs, and the headers of requests and responses.
use crate::wire::Reader;
use crate::wire::error::{Result, WireError};

/// Lowest and highest version, both included.
pub(crate) type VersionRange = (i16, i16);

/// What this library asks brokers for. `Some` versions: it speaks these; none: only the name is needed, to tell
/// whether a broker offers it.
macro_rules! apis {
    ($($code:literal $name:ident flexible $flexible:literal $(speaks $low:literal to $high:literal)?;)+) => {
        /// An API of Kafka's protocol. Administration and group APIs are here by name, for [`Offered`].
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[allow(missing_docs)] // Kafka's names
        #[allow(dead_code)] // messages are read and written whole
        pub(crate) enum ApiKey {
            $($name = $code,)+
        }

        impl ApiKey {
            /// The API with the number `code`.
            #[allow(dead_code)] // messages are read and written whole
            pub(crate) fn from_code(code: i16) -> Option<ApiKey> {
                match code {
                    $($code => Some(ApiKey::$name),)+
                    _ => None,
                }
            }

            /// Kafka's name.
            pub(crate) fn name(self) -> &'static str {
                match self {
                    $(ApiKey::$name => stringify!($name),)+
                }
            }

            /// Versions that this library encodes and decodes.
            pub(crate) fn spoken(self) -> Option<VersionRange> {
                match self {
                    $(ApiKey::$name => {
                        let range: &[VersionRange] = &[$(($low, $high))?];
                        range.first().copied()
                    })+
                }
            }

            /// The first version in the flexible form.
            fn first_flexible(self) -> i16 {
                match self {
                    $(ApiKey::$name => $flexible,)+
                }
            }
        }
    };
}

apis! {
    0 Produce flexible 9 speaks 3 to 13;
    1 Fetch flexible 12 speaks 4 to 17;
    2 ListOffsets flexible 6 speaks 4 to 7;
    3 Metadata flexible 9 speaks 5 to 12;
    8 OffsetCommit flexible 8;
    9 OffsetFetch flexible 6;
    10 FindCoordinator flexible 3 speaks 1 to 3;
    11 JoinGroup flexible 6;
    12 Heartbeat flexible 4;
    13 LeaveGroup flexible 4;
    14 SyncGroup flexible 4;
    15 DescribeGroups flexible 5;
    17 SaslHandshake flexible 32767 speaks 1 to 1;
    18 ApiVersions flexible 3 speaks 0 to 4;
    19 CreateTopics flexible 5;
    20 DeleteTopics flexible 4;
    21 DeleteRecords flexible 2;
    22 InitProducerId flexible 2 speaks 0 to 5;
    23 OffsetForLeaderEpoch flexible 4 speaks 2 to 4;
    24 AddPartitionsToTxn flexible 3 speaks 0 to 3;
    25 AddOffsetsToTxn flexible 3 speaks 0 to 4;
    26 EndTxn flexible 3 speaks 0 to 5;
    28 TxnOffsetCommit flexible 3 speaks 3 to 5;
    32 DescribeConfigs flexible 4;
    36 SaslAuthenticate flexible 2 speaks 1 to 1;
    37 CreatePartitions flexible 2;
    42 DeleteGroups flexible 2;
    60 DescribeCluster flexible 0;
    68 ConsumerGroupHeartbeat flexible 0;
    69 ConsumerGroupDescribe flexible 0;
    75 DescribeTopicPartitions flexible 0;
    88 StreamsGroupHeartbeat flexible 0;
    89 StreamsGroupDescribe flexible 0;
}

impl ApiKey {
    /// The number on the wire.
    pub(crate) fn code(self) -> i16 {
        self as i16
    }

    /// Whether `version` has the flexible form (KIP-482).
    pub(crate) fn is_flexible(self, version: i16) -> bool {
        version >= self.first_flexible()
    }
}

/// The header of a request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RequestHeader<'a> {
    /// The API.
    pub(crate) api: ApiKey,
    /// Its version.
    pub(crate) version: i16,
    /// Comes back in the response.
    pub(crate) correlation_id: i32,
    /// Name of the client in the broker's logs, metrics and quotas.
    pub(crate) client_id: &'a str,
}

/// Bytes of the frame behind the length prefix at the start of `bytes`; `None` when the prefix is not there yet.
#[allow(dead_code)] // messages are read and written whole
pub(crate) fn frame_len(bytes: &[u8]) -> Result<Option<usize>> {
    match bytes.first_chunk() {
        None => Ok(None),
        Some(prefix) => match usize::try_from(i32::from_be_bytes(*prefix)) {
            Ok(len) if len >= 4 => Ok(Some(len)),
            _ => Err(WireError::Malformed { what: "frame length", at: 0 }),
        },
    }
}

/// The correlation id of a response: the first four bytes of its frame, which is without the length prefix here and
/// below.
#[allow(dead_code)] // messages are read and written whole
pub(crate) fn correlation_id(frame: &[u8]) -> Result<i32> {
    Reader::new(frame, false).i32()
}

/// Opens a response: a reader behind its header. Positions that it answers count from the start of `frame`.
pub(crate) fn response(frame: &[u8], api: ApiKey, version: i16) -> Result<Reader<'_>> {
    let flexible = api.is_flexible(version);
    let mut reader = Reader::new(frame, flexible);
    reader.i32()?;
    if api != ApiKey::ApiVersions {
        reader.skip_tags()?; // ApiVersions has none, so that any client can read it
    }
    Ok(reader)
}

/// Version of Metadata that Kafka 2.4 brought.
const METADATA_OF_2_4: i16 = 9;
/// Room for every API number assigned so far, and some.
const APIS: usize = 128;

/// The versions that a broker offers. Fixed size, no allocation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Offered {
    ranges: [VersionRange; APIS],
}

impl Offered {
    /// Not offered: an empty range.
    const NO: VersionRange = (0, -1);

    /// Nothing.
    pub(crate) const NOTHING: Offered = Offered { ranges: [Offered::NO; APIS] };

    /// Notes a range; numbers beyond the table are ignored.
    pub(crate) fn set(&mut self, code: i16, range: VersionRange) {
        if let Some(slot) = usize::try_from(code).ok().and_then(|code| self.ranges.get_mut(code)) {
            *slot = range;
        }
    }

    /// The versions offered of `api`.
    pub(crate) fn range(&self, api: ApiKey) -> Option<VersionRange> {
        self.ranges.get(api as usize).copied().filter(|(low, high)| low <= high)
    }

    /// Whether `api` is offered at all.
    pub(crate) fn has(&self, api: ApiKey) -> bool {
        self.range(api).is_some()
    }

    /// Refuses brokers of a release before Kafka 2.4, which brought version 9 of Metadata. (The version of Fetch tells
    /// less: its rack came with 2.3.) A peer that does not offer Metadata at all is not judged.
    pub(crate) fn check_release(&self) -> Result<()> {
        match self.range(ApiKey::Metadata) {
            Some((_, highest)) if highest < METADATA_OF_2_4 => Err(WireError::TooOld { metadata: highest }),
            _ => Ok(()),
        }
    }

    /// The highest version of `api` that the broker offers and this library speaks.
    pub(crate) fn choose(&self, api: ApiKey) -> Result<i16> {
        self.choose_up_to(api, i16::MAX)
    }

    /// As [`Offered::choose`], but at most `most`: Fetch up to 12 when topics have no ids, Produce up to 11 without
    /// transactions of version 2.
    pub(crate) fn choose_up_to(&self, api: ApiKey, most: i16) -> Result<i16> {
        let (lowest, highest) = self.range(api).unwrap_or(Offered::NO);
        let (low, high) = api.spoken().unwrap_or(Offered::NO);
        let version = highest.min(high).min(most);
        match version >= lowest.max(low) {
            true => Ok(version),
            false => Err(WireError::Unsupported { api: api.name(), lowest, highest }),
        }
    }
}

//! Kafka's error codes, with the names and classes they have in Kafka's own client
//! (`org.apache.kafka.common.protocol.Errors`).
use std::fmt;

/// What a client does about a code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Class {
    /// Trying the same again cannot help.
    Fatal,
    /// Trying again may help.
    Retriable,
    /// Trying again may help once the metadata has been refreshed.
    Metadata,
}

macro_rules! codes {
    ($($code:literal $name:ident $text:literal $class:ident),+ $(,)?) => {
        /// The error code of a response. Codes that clients never meet, or that are newer than this library, are
        /// `Unknown`.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        #[allow(missing_docs)] // Kafka's protocol guide describes each by this name
        pub enum ErrorCode {
            $($name,)+
            /// Any other code, by its number.
            Unknown(i16),
        }

        impl ErrorCode {
            /// The code with the number `code`.
            pub(crate) const fn from_code(code: i16) -> ErrorCode {
                match code {
                    $($code => ErrorCode::$name,)+
                    other => ErrorCode::Unknown(other),
                }
            }

            /// The number on the wire.
            pub const fn code(self) -> i16 {
                match self {
                    $(ErrorCode::$name => $code,)+
                    ErrorCode::Unknown(code) => code,
                }
            }

            /// Kafka's name, as in its protocol guide and the brokers' logs: `NOT_LEADER_OR_FOLLOWER`.
            pub const fn name(self) -> &'static str {
                match self {
                    $(ErrorCode::$name => $text,)+
                    ErrorCode::Unknown(_) => "UNKNOWN",
                }
            }

            const fn class(self) -> Class {
                match self {
                    $(ErrorCode::$name => Class::$class,)+
                    ErrorCode::Unknown(_) => Class::Fatal,
                }
            }
        }
    };
}

codes! {
    -1 UnknownServerError "UNKNOWN_SERVER_ERROR" Fatal,
    0 None "NONE" Fatal,
    1 OffsetOutOfRange "OFFSET_OUT_OF_RANGE" Fatal,
    2 CorruptMessage "CORRUPT_MESSAGE" Retriable,
    3 UnknownTopicOrPartition "UNKNOWN_TOPIC_OR_PARTITION" Metadata,
    4 InvalidFetchSize "INVALID_FETCH_SIZE" Fatal,
    5 LeaderNotAvailable "LEADER_NOT_AVAILABLE" Metadata,
    6 NotLeaderOrFollower "NOT_LEADER_OR_FOLLOWER" Metadata,
    7 RequestTimedOut "REQUEST_TIMED_OUT" Retriable,
    8 BrokerNotAvailable "BROKER_NOT_AVAILABLE" Fatal,
    9 ReplicaNotAvailable "REPLICA_NOT_AVAILABLE" Metadata,
    10 MessageTooLarge "MESSAGE_TOO_LARGE" Fatal,
    11 StaleControllerEpoch "STALE_CONTROLLER_EPOCH" Fatal,
    12 OffsetMetadataTooLarge "OFFSET_METADATA_TOO_LARGE" Fatal,
    13 NetworkException "NETWORK_EXCEPTION" Metadata,
    14 CoordinatorLoadInProgress "COORDINATOR_LOAD_IN_PROGRESS" Retriable,
    15 CoordinatorNotAvailable "COORDINATOR_NOT_AVAILABLE" Retriable,
    16 NotCoordinator "NOT_COORDINATOR" Retriable,
    17 InvalidTopicException "INVALID_TOPIC_EXCEPTION" Fatal,
    18 RecordListTooLarge "RECORD_LIST_TOO_LARGE" Fatal,
    19 NotEnoughReplicas "NOT_ENOUGH_REPLICAS" Retriable,
    20 NotEnoughReplicasAfterAppend "NOT_ENOUGH_REPLICAS_AFTER_APPEND" Retriable,
    21 InvalidRequiredAcks "INVALID_REQUIRED_ACKS" Fatal,
    22 IllegalGeneration "ILLEGAL_GENERATION" Fatal,
    23 InconsistentGroupProtocol "INCONSISTENT_GROUP_PROTOCOL" Fatal,
    24 InvalidGroupId "INVALID_GROUP_ID" Fatal,
    25 UnknownMemberId "UNKNOWN_MEMBER_ID" Fatal,
    26 InvalidSessionTimeout "INVALID_SESSION_TIMEOUT" Fatal,
    27 RebalanceInProgress "REBALANCE_IN_PROGRESS" Fatal,
    28 InvalidCommitOffsetSize "INVALID_COMMIT_OFFSET_SIZE" Fatal,
    29 TopicAuthorizationFailed "TOPIC_AUTHORIZATION_FAILED" Fatal,
    30 GroupAuthorizationFailed "GROUP_AUTHORIZATION_FAILED" Fatal,
    31 ClusterAuthorizationFailed "CLUSTER_AUTHORIZATION_FAILED" Fatal,
    32 InvalidTimestamp "INVALID_TIMESTAMP" Fatal,
    33 UnsupportedSaslMechanism "UNSUPPORTED_SASL_MECHANISM" Fatal,
    34 IllegalSaslState "ILLEGAL_SASL_STATE" Fatal,
    35 UnsupportedVersion "UNSUPPORTED_VERSION" Fatal,
    36 TopicAlreadyExists "TOPIC_ALREADY_EXISTS" Fatal,
    37 InvalidPartitions "INVALID_PARTITIONS" Fatal,
    38 InvalidReplicationFactor "INVALID_REPLICATION_FACTOR" Fatal,
    39 InvalidReplicaAssignment "INVALID_REPLICA_ASSIGNMENT" Fatal,
    40 InvalidConfig "INVALID_CONFIG" Fatal,
    41 NotController "NOT_CONTROLLER" Retriable,
    42 InvalidRequest "INVALID_REQUEST" Fatal,
    43 UnsupportedForMessageFormat "UNSUPPORTED_FOR_MESSAGE_FORMAT" Fatal,
    44 PolicyViolation "POLICY_VIOLATION" Fatal,
    45 OutOfOrderSequenceNumber "OUT_OF_ORDER_SEQUENCE_NUMBER" Fatal,
    46 DuplicateSequenceNumber "DUPLICATE_SEQUENCE_NUMBER" Fatal,
    47 InvalidProducerEpoch "INVALID_PRODUCER_EPOCH" Fatal,
    48 InvalidTxnState "INVALID_TXN_STATE" Fatal,
    49 InvalidProducerIdMapping "INVALID_PRODUCER_ID_MAPPING" Fatal,
    50 InvalidTransactionTimeout "INVALID_TRANSACTION_TIMEOUT" Fatal,
    51 ConcurrentTransactions "CONCURRENT_TRANSACTIONS" Retriable,
    52 TransactionCoordinatorFenced "TRANSACTION_COORDINATOR_FENCED" Fatal,
    53 TransactionalIdAuthorizationFailed "TRANSACTIONAL_ID_AUTHORIZATION_FAILED" Fatal,
    54 SecurityDisabled "SECURITY_DISABLED" Fatal,
    55 OperationNotAttempted "OPERATION_NOT_ATTEMPTED" Fatal,
    56 KafkaStorageError "KAFKA_STORAGE_ERROR" Metadata,
    57 LogDirNotFound "LOG_DIR_NOT_FOUND" Fatal,
    58 SaslAuthenticationFailed "SASL_AUTHENTICATION_FAILED" Fatal,
    59 UnknownProducerId "UNKNOWN_PRODUCER_ID" Fatal,
    68 NonEmptyGroup "NON_EMPTY_GROUP" Fatal,
    69 GroupIdNotFound "GROUP_ID_NOT_FOUND" Fatal,
    70 FetchSessionIdNotFound "FETCH_SESSION_ID_NOT_FOUND" Retriable,
    71 InvalidFetchSessionEpoch "INVALID_FETCH_SESSION_EPOCH" Retriable,
    72 ListenerNotFound "LISTENER_NOT_FOUND" Metadata,
    73 TopicDeletionDisabled "TOPIC_DELETION_DISABLED" Fatal,
    74 FencedLeaderEpoch "FENCED_LEADER_EPOCH" Metadata,
    75 UnknownLeaderEpoch "UNKNOWN_LEADER_EPOCH" Retriable,
    76 UnsupportedCompressionType "UNSUPPORTED_COMPRESSION_TYPE" Fatal,
    77 StaleBrokerEpoch "STALE_BROKER_EPOCH" Fatal,
    78 OffsetNotAvailable "OFFSET_NOT_AVAILABLE" Retriable,
    79 MemberIdRequired "MEMBER_ID_REQUIRED" Fatal,
    82 FencedInstanceId "FENCED_INSTANCE_ID" Fatal,
    86 GroupSubscribedToTopic "GROUP_SUBSCRIBED_TO_TOPIC" Fatal,
    87 InvalidRecord "INVALID_RECORD" Fatal,
    88 UnstableOffsetCommit "UNSTABLE_OFFSET_COMMIT" Retriable,
    89 ThrottlingQuotaExceeded "THROTTLING_QUOTA_EXCEEDED" Retriable,
    90 ProducerFenced "PRODUCER_FENCED" Fatal,
    100 UnknownTopicId "UNKNOWN_TOPIC_ID" Metadata,
    103 InconsistentTopicId "INCONSISTENT_TOPIC_ID" Metadata,
    104 InconsistentClusterId "INCONSISTENT_CLUSTER_ID" Fatal,
    105 TransactionalIdNotFound "TRANSACTIONAL_ID_NOT_FOUND" Fatal,
    106 FetchSessionTopicIdError "FETCH_SESSION_TOPIC_ID_ERROR" Retriable,
    109 OffsetMovedToTieredStorage "OFFSET_MOVED_TO_TIERED_STORAGE" Fatal,
    110 FencedMemberEpoch "FENCED_MEMBER_EPOCH" Fatal,
    111 UnreleasedInstanceId "UNRELEASED_INSTANCE_ID" Fatal,
    112 UnsupportedAssignor "UNSUPPORTED_ASSIGNOR" Fatal,
    113 StaleMemberEpoch "STALE_MEMBER_EPOCH" Fatal,
    120 TransactionAbortable "TRANSACTION_ABORTABLE" Fatal,
    129 RebootstrapRequired "REBOOTSTRAP_REQUIRED" Fatal,
    130 StreamsInvalidTopology "STREAMS_INVALID_TOPOLOGY" Fatal,
    131 StreamsInvalidTopologyEpoch "STREAMS_INVALID_TOPOLOGY_EPOCH" Fatal,
    132 StreamsTopologyFenced "STREAMS_TOPOLOGY_FENCED" Fatal,
}

impl ErrorCode {
    /// Whether there is no error.
    pub const fn is_none(self) -> bool {
        matches!(self, ErrorCode::None)
    }

    /// Whether Kafka's own client tries the same request again after this code.
    pub const fn is_retriable(self) -> bool {
        !matches!(self.class(), Class::Fatal)
    }

    /// Whether the client's metadata is out of date: refresh it before trying again.
    pub const fn needs_metadata(self) -> bool {
        matches!(self.class(), Class::Metadata)
    }
}

impl fmt::Display for ErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.name(), self.code())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_keeps_its_value() {
        for code in i16::MIN..=i16::MAX {
            assert_eq!(ErrorCode::from_code(code).code(), code);
        }
    }

    #[test]
    fn names_and_classes_are_those_of_kafkas_client() {
        assert_eq!(ErrorCode::from_code(6), ErrorCode::NotLeaderOrFollower);
        assert_eq!(ErrorCode::NotLeaderOrFollower.to_string(), "NOT_LEADER_OR_FOLLOWER (6)");
        assert_eq!(ErrorCode::from_code(9999).to_string(), "UNKNOWN (9999)");
        let retriable = [2, 3, 5, 6, 7, 13, 14, 15, 16, 19, 20, 51, 56, 70, 71, 74, 75, 78, 88, 100, 103, 106];
        for code in retriable {
            assert!(ErrorCode::from_code(code).is_retriable(), "{code}");
        }
        let metadata = [3, 5, 6, 9, 13, 56, 72, 74, 100, 103];
        for code in -1..200 {
            assert_eq!(ErrorCode::from_code(code).needs_metadata(), metadata.contains(&code), "{code}");
        }
        for fatal in [-1, 0, 1, 10, 35, 45, 47, 59, 87, 90] {
            assert!(!ErrorCode::from_code(fatal).is_retriable(), "{fatal}");
        }
    }
}

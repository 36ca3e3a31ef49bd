// Prints the byte vectors of `vectors.txt` with Apache Kafka's own client library:
//   javac -cp 'kafka/*' Vectors.java && java -cp 'kafka/*:.' Vectors > vectors.txt     (kafka/: the jars of kafka-clients 4.3)
// Each line: what it is, then its bytes in hexadecimal. The values are those that the tests name.
import java.nio.ByteBuffer;
import java.util.HexFormat;
import java.util.List;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.internals.RecordHeader;
import org.apache.kafka.common.message.*;
import org.apache.kafka.common.protocol.*;
import org.apache.kafka.common.record.*;
import org.apache.kafka.common.record.internal.*;
import org.apache.kafka.common.requests.*;

public class Vectors {
    static final Uuid TOPIC_ID = new Uuid(0x0102030405060708L, 0x090a0b0c0d0e0f10L);
    static final MemoryRecords RECORDS = batch(Compression.NONE, TimestampType.CREATE_TIME, "v2");

    public static void main(String[] args) {
        batches();
        for (short v = 0; v <= 4; v++) apiVersions(v);
        for (short v = 5; v <= 12; v++) metadata(v);
        for (short v = 4; v <= 7; v++) listOffsets(v);
        for (short v = 4; v <= 17; v++) fetch(v);
        for (short v = 3; v <= 13; v++) produce(v);
        for (short v = 0; v <= 5; v++) initProducerId(v);
        for (short v = 1; v <= 3; v++) findCoordinator(v);
        for (short v = 2; v <= 4; v++) offsetForLeaderEpoch(v);
        for (short v = 0; v <= 3; v++) addPartitionsToTxn(v);
        for (short v = 0; v <= 4; v++) addOffsetsToTxn(v);
        for (short v = 0; v <= 5; v++) endTxn(v);
        for (short v = 3; v <= 5; v++) txnOffsetCommit(v);
    }

    static void batches() {
        print("batch none", buffer(RECORDS));
        print("batch gzip", buffer(batch(Compression.gzip().build(), TimestampType.CREATE_TIME, "v2")));
        print("batch snappy", buffer(batch(Compression.snappy().build(), TimestampType.CREATE_TIME, "v2")));
        print("batch lz4", buffer(batch(Compression.lz4().build(), TimestampType.CREATE_TIME, "v2")));
        print("batch zstd", buffer(batch(Compression.zstd().build(), TimestampType.CREATE_TIME, "v2")));
        String large = "0123456789abcdef".repeat(12_500);
        print("large gzip", buffer(batch(Compression.gzip().build(), TimestampType.CREATE_TIME, large)));
        print("large snappy", buffer(batch(Compression.snappy().build(), TimestampType.CREATE_TIME, large)));
        print("large lz4", buffer(batch(Compression.lz4().build(), TimestampType.CREATE_TIME, large)));
        print("large zstd", buffer(batch(Compression.zstd().build(), TimestampType.CREATE_TIME, large)));
        print("batch appended", buffer(batch(Compression.NONE, TimestampType.LOG_APPEND_TIME, "v2")));
        for (ControlRecordType type : List.of(ControlRecordType.ABORT, ControlRecordType.COMMIT))
            print("control " + type.name().toLowerCase(), buffer(MemoryRecords.withEndTransactionMarker(
                500, 2000, 4, 77, (short) 3, new EndTransactionMarker(type, 9))));
        MemoryRecordsBuilder old = MemoryRecords.builder(ByteBuffer.allocate(1000), RecordBatch.MAGIC_VALUE_V1,
            Compression.NONE, TimestampType.CREATE_TIME, 100);
        old.append(1000, "k".getBytes(), "v".getBytes());
        print("batch magic1", buffer(old.build()));
    }

    static MemoryRecords batch(Compression compression, TimestampType type, String second) {
        MemoryRecordsBuilder builder = MemoryRecords.builder(ByteBuffer.allocate(1 << 20), RecordBatch.MAGIC_VALUE_V2,
            compression, type, 100, 5555, 77, (short) 3, 10, false, 4);
        builder.append(1000, "k1".getBytes(), "v1".getBytes());
        builder.append(1005, null, second.getBytes(), new Header[] {
            new RecordHeader("h1", "x".getBytes()), new RecordHeader("h2", (byte[]) null) });
        builder.append(999, "".getBytes(), null);
        return builder.build();
    }

    static void apiVersions(short v) {
        request(ApiKeys.API_VERSIONS, v, new ApiVersionsRequestData()
            .setClientSoftwareName("plimsoll").setClientSoftwareVersion("0.1.0"));
        ApiVersionsResponseData d = new ApiVersionsResponseData().setThrottleTimeMs(v >= 1 ? 11 : 0);
        d.apiKeys().add(new ApiVersionsResponseData.ApiVersion().setApiKey((short) 1).setMinVersion((short) 4).setMaxVersion((short) 17));
        d.apiKeys().add(new ApiVersionsResponseData.ApiVersion().setApiKey((short) 18).setMinVersion((short) 0).setMaxVersion((short) 4));
        d.apiKeys().add(new ApiVersionsResponseData.ApiVersion().setApiKey((short) 999).setMinVersion((short) 0).setMaxVersion((short) 1));
        if (v >= 3) {
            d.supportedFeatures().add(new ApiVersionsResponseData.SupportedFeatureKey()
                .setName("transaction.version").setMinVersion((short) 0).setMaxVersion((short) 3));
            d.setFinalizedFeaturesEpoch(5);
            d.finalizedFeatures().add(new ApiVersionsResponseData.FinalizedFeatureKey()
                .setName("metadata.version").setMaxVersionLevel((short) 25).setMinVersionLevel((short) 1));
            d.finalizedFeatures().add(new ApiVersionsResponseData.FinalizedFeatureKey()
                .setName("transaction.version").setMaxVersionLevel((short) 2).setMinVersionLevel((short) 1));
        }
        response(ApiKeys.API_VERSIONS, v, d);
    }

    static void metadata(short v) {
        MetadataRequestData q = new MetadataRequestData().setAllowAutoTopicCreation(false);
        q.topics().add(new MetadataRequestData.MetadataRequestTopic().setName("orders"));
        q.topics().add(v >= 12 ? new MetadataRequestData.MetadataRequestTopic().setName(null).setTopicId(TOPIC_ID)
            : new MetadataRequestData.MetadataRequestTopic().setName("other"));
        request(ApiKeys.METADATA, v, q);
        MetadataResponseData d = new MetadataResponseData().setThrottleTimeMs(11).setClusterId("cluster").setControllerId(2);
        d.brokers().add(new MetadataResponseData.MetadataResponseBroker().setNodeId(1).setHost("b1").setPort(9092).setRack("r1"));
        d.brokers().add(new MetadataResponseData.MetadataResponseBroker().setNodeId(2).setHost("b2").setPort(9093).setRack(null));
        MetadataResponseData.MetadataResponseTopic t = new MetadataResponseData.MetadataResponseTopic()
            .setName("orders").setIsInternal(false);
        if (v >= 10) t.setTopicId(TOPIC_ID);
        t.partitions().add(new MetadataResponseData.MetadataResponsePartition().setPartitionIndex(1).setLeaderId(2)
            .setLeaderEpoch(v >= 7 ? 9 : -1).setReplicaNodes(List.of(2, 1)).setIsrNodes(List.of(2)).setOfflineReplicas(List.of(1)));
        t.partitions().add(new MetadataResponseData.MetadataResponsePartition().setErrorCode((short) 5).setPartitionIndex(0)
            .setLeaderId(-1).setReplicaNodes(List.of(1)).setIsrNodes(List.of()));
        d.topics().add(t);
        d.topics().add(new MetadataResponseData.MetadataResponseTopic().setErrorCode((short) 3).setName("other"));
        response(ApiKeys.METADATA, v, d);
    }

    static void listOffsets(short v) {
        ListOffsetsRequestData q = new ListOffsetsRequestData().setReplicaId(-1).setIsolationLevel((byte) 1);
        q.topics().add(new ListOffsetsRequestData.ListOffsetsTopic().setName("orders").setPartitions(List.of(
            new ListOffsetsRequestData.ListOffsetsPartition().setPartitionIndex(0).setCurrentLeaderEpoch(9).setTimestamp(-1),
            new ListOffsetsRequestData.ListOffsetsPartition().setPartitionIndex(1).setCurrentLeaderEpoch(-1).setTimestamp(-2))));
        request(ApiKeys.LIST_OFFSETS, v, q);
        ListOffsetsResponseData d = new ListOffsetsResponseData().setThrottleTimeMs(11);
        d.topics().add(new ListOffsetsResponseData.ListOffsetsTopicResponse().setName("orders").setPartitions(List.of(
            new ListOffsetsResponseData.ListOffsetsPartitionResponse().setPartitionIndex(0).setTimestamp(-1).setOffset(42).setLeaderEpoch(9),
            new ListOffsetsResponseData.ListOffsetsPartitionResponse().setPartitionIndex(1).setErrorCode((short) 6))));
        response(ApiKeys.LIST_OFFSETS, v, d);
    }

    static void fetch(short v) {
        FetchRequestData q = new FetchRequestData().setReplicaId(-1).setMaxWaitMs(500).setMinBytes(1).setMaxBytes(1048576)
            .setIsolationLevel((byte) 1);
        if (v >= 11) q.setRackId("r1");
        FetchRequestData.FetchTopic qt = new FetchRequestData.FetchTopic();
        if (v >= 13) qt.setTopicId(TOPIC_ID); else qt.setTopic("orders");
        for (int p = 3; p <= 4; p++)
            qt.partitions().add(new FetchRequestData.FetchPartition().setPartition(p).setFetchOffset(40 + p).setPartitionMaxBytes(65536)
                .setCurrentLeaderEpoch(v >= 9 ? 7 : -1).setLastFetchedEpoch(v >= 12 ? 6 : -1));
        q.topics().add(qt);
        request(ApiKeys.FETCH, v, q);
        FetchResponseData d = new FetchResponseData().setThrottleTimeMs(11);
        if (v >= 7) d.setSessionId(0);
        FetchResponseData.FetchableTopicResponse t = new FetchResponseData.FetchableTopicResponse();
        if (v >= 13) t.setTopicId(TOPIC_ID); else t.setTopic("orders");
        t.partitions().add(new FetchResponseData.PartitionData().setPartitionIndex(3).setHighWatermark(100).setLastStableOffset(90)
            .setLogStartOffset(v >= 5 ? 10 : -1).setPreferredReadReplica(v >= 11 ? 2 : -1).setRecords(RECORDS)
            .setAbortedTransactions(List.of(new FetchResponseData.AbortedTransaction().setProducerId(5).setFirstOffset(50))));
        FetchResponseData.PartitionData moved = new FetchResponseData.PartitionData().setPartitionIndex(4).setErrorCode((short) 6)
            .setHighWatermark(-1).setLastStableOffset(-1).setAbortedTransactions(null).setRecords(v >= 12 ? MemoryRecords.EMPTY : null);
        if (v >= 12) moved.setCurrentLeader(new FetchResponseData.LeaderIdAndEpoch().setLeaderId(2).setLeaderEpoch(9))
            .setDivergingEpoch(new FetchResponseData.EpochEndOffset().setEpoch(3).setEndOffset(77));
        t.partitions().add(moved);
        d.responses().add(t);
        if (v >= 16) d.nodeEndpoints().add(new FetchResponseData.NodeEndpoint().setNodeId(2).setHost("b2").setPort(9093).setRack("r1"));
        response(ApiKeys.FETCH, v, d);
    }

    static void produce(short v) {
        ProduceRequestData q = new ProduceRequestData().setTransactionalId(v % 2 == 0 ? "tx" : null).setAcks((short) -1).setTimeoutMs(30000);
        ProduceRequestData.TopicProduceData qt = new ProduceRequestData.TopicProduceData();
        if (v >= 13) qt.setTopicId(TOPIC_ID); else qt.setName("orders");
        for (int p : new int[] {0, 5})
            qt.partitionData().add(new ProduceRequestData.PartitionProduceData().setIndex(p).setRecords(RECORDS));
        q.topicData().add(qt);
        request(ApiKeys.PRODUCE, v, q);
        ProduceResponseData d = new ProduceResponseData().setThrottleTimeMs(11);
        ProduceResponseData.TopicProduceResponse t = new ProduceResponseData.TopicProduceResponse();
        if (v >= 13) t.setTopicId(TOPIC_ID); else t.setName("orders");
        t.partitionResponses().add(new ProduceResponseData.PartitionProduceResponse().setIndex(0).setBaseOffset(1234)
            .setLogAppendTimeMs(-1).setLogStartOffset(v >= 5 ? 10 : -1));
        ProduceResponseData.PartitionProduceResponse bad = new ProduceResponseData.PartitionProduceResponse().setIndex(5)
            .setErrorCode((short) 6).setBaseOffset(-1);
        if (v >= 8) bad.setErrorMessage("moved").setRecordErrors(List.of(
            new ProduceResponseData.BatchIndexAndErrorMessage().setBatchIndex(2).setBatchIndexErrorMessage("bad")));
        if (v >= 10) bad.setCurrentLeader(new ProduceResponseData.LeaderIdAndEpoch().setLeaderId(2).setLeaderEpoch(9));
        t.partitionResponses().add(bad);
        d.responses().add(t);
        if (v >= 10) d.nodeEndpoints().add(new ProduceResponseData.NodeEndpoint().setNodeId(2).setHost("b2").setPort(9093).setRack("r1"));
        response(ApiKeys.PRODUCE, v, d);
    }

    static void initProducerId(short v) {
        InitProducerIdRequestData q = new InitProducerIdRequestData().setTransactionalId("tx").setTransactionTimeoutMs(60000);
        if (v >= 3) q.setProducerId(77).setProducerEpoch((short) 3);
        request(ApiKeys.INIT_PRODUCER_ID, v, q);
        response(ApiKeys.INIT_PRODUCER_ID, v, new InitProducerIdResponseData().setThrottleTimeMs(11).setProducerId(77).setProducerEpoch((short) 4));
    }

    static void findCoordinator(short v) {
        request(ApiKeys.FIND_COORDINATOR, v, new FindCoordinatorRequestData().setKey("tx").setKeyType((byte) 1));
        response(ApiKeys.FIND_COORDINATOR, v, new FindCoordinatorResponseData().setThrottleTimeMs(11).setErrorCode((short) 15)
            .setErrorMessage("later").setNodeId(2).setHost("b2").setPort(9093));
    }

    static void offsetForLeaderEpoch(short v) {
        OffsetForLeaderEpochRequestData q = new OffsetForLeaderEpochRequestData().setReplicaId(v >= 3 ? -1 : -2);
        OffsetForLeaderEpochRequestData.OffsetForLeaderTopic qt = new OffsetForLeaderEpochRequestData.OffsetForLeaderTopic().setTopic("orders");
        qt.partitions().add(new OffsetForLeaderEpochRequestData.OffsetForLeaderPartition().setPartition(1).setCurrentLeaderEpoch(9).setLeaderEpoch(6));
        q.topics().add(qt);
        request(ApiKeys.OFFSET_FOR_LEADER_EPOCH, v, q);
        OffsetForLeaderEpochResponseData d = new OffsetForLeaderEpochResponseData().setThrottleTimeMs(11);
        OffsetForLeaderEpochResponseData.OffsetForLeaderTopicResult t = new OffsetForLeaderEpochResponseData.OffsetForLeaderTopicResult().setTopic("orders");
        t.partitions().add(new OffsetForLeaderEpochResponseData.EpochEndOffset().setPartition(1).setLeaderEpoch(6).setEndOffset(321));
        d.topics().add(t);
        response(ApiKeys.OFFSET_FOR_LEADER_EPOCH, v, d);
    }

    static void addPartitionsToTxn(short v) {
        AddPartitionsToTxnRequestData q = new AddPartitionsToTxnRequestData().setV3AndBelowTransactionalId("tx")
            .setV3AndBelowProducerId(77).setV3AndBelowProducerEpoch((short) 3);
        q.v3AndBelowTopics().add(new AddPartitionsToTxnRequestData.AddPartitionsToTxnTopic().setName("orders").setPartitions(List.of(0, 5)));
        q.v3AndBelowTopics().add(new AddPartitionsToTxnRequestData.AddPartitionsToTxnTopic().setName("other").setPartitions(List.of(2)));
        request(ApiKeys.ADD_PARTITIONS_TO_TXN, v, q);
        AddPartitionsToTxnResponseData d = new AddPartitionsToTxnResponseData().setThrottleTimeMs(11);
        AddPartitionsToTxnResponseData.AddPartitionsToTxnTopicResult t =
            new AddPartitionsToTxnResponseData.AddPartitionsToTxnTopicResult().setName("orders");
        t.resultsByPartition().add(new AddPartitionsToTxnResponseData.AddPartitionsToTxnPartitionResult().setPartitionIndex(0));
        t.resultsByPartition().add(new AddPartitionsToTxnResponseData.AddPartitionsToTxnPartitionResult().setPartitionIndex(5)
            .setPartitionErrorCode((short) 51));
        d.resultsByTopicV3AndBelow().add(t);
        response(ApiKeys.ADD_PARTITIONS_TO_TXN, v, d);
    }

    static void addOffsetsToTxn(short v) {
        request(ApiKeys.ADD_OFFSETS_TO_TXN, v, new AddOffsetsToTxnRequestData().setTransactionalId("tx")
            .setProducerId(77).setProducerEpoch((short) 3).setGroupId("g"));
        response(ApiKeys.ADD_OFFSETS_TO_TXN, v, new AddOffsetsToTxnResponseData().setThrottleTimeMs(11).setErrorCode((short) 51));
    }

    static void endTxn(short v) {
        request(ApiKeys.END_TXN, v, new EndTxnRequestData().setTransactionalId("tx")
            .setProducerId(77).setProducerEpoch((short) 3).setCommitted(true));
        EndTxnResponseData d = new EndTxnResponseData().setThrottleTimeMs(11);
        if (v >= 5) d.setProducerId(77).setProducerEpoch((short) 4);
        response(ApiKeys.END_TXN, v, d);
    }

    static void txnOffsetCommit(short v) {
        TxnOffsetCommitRequestData q = new TxnOffsetCommitRequestData().setTransactionalId("tx").setGroupId("g")
            .setProducerId(77).setProducerEpoch((short) 3).setGenerationId(9).setMemberId("m").setGroupInstanceId("i");
        q.topics().add(new TxnOffsetCommitRequestData.TxnOffsetCommitRequestTopic().setName("orders").setPartitions(List.of(
            new TxnOffsetCommitRequestData.TxnOffsetCommitRequestPartition().setPartitionIndex(0).setCommittedOffset(42)
                .setCommittedLeaderEpoch(6).setCommittedMetadata("x"),
            new TxnOffsetCommitRequestData.TxnOffsetCommitRequestPartition().setPartitionIndex(1).setCommittedOffset(43)
                .setCommittedLeaderEpoch(-1).setCommittedMetadata(""))));
        request(ApiKeys.TXN_OFFSET_COMMIT, v, q);
        TxnOffsetCommitResponseData d = new TxnOffsetCommitResponseData().setThrottleTimeMs(11);
        d.topics().add(new TxnOffsetCommitResponseData.TxnOffsetCommitResponseTopic().setName("orders").setPartitions(List.of(
            new TxnOffsetCommitResponseData.TxnOffsetCommitResponsePartition().setPartitionIndex(0),
            new TxnOffsetCommitResponseData.TxnOffsetCommitResponsePartition().setPartitionIndex(1).setErrorCode((short) 22))));
        response(ApiKeys.TXN_OFFSET_COMMIT, v, d);
    }

    static void request(ApiKeys api, short v, ApiMessage data) {
        RequestHeader header = new RequestHeader(api, v, "plimsoll", 7);
        print("request " + api.name + " " + v, framed(header.data(), header.headerVersion(), data, v));
    }

    static void response(ApiKeys api, short v, ApiMessage data) {
        print("response " + api.name + " " + v, framed(new ResponseHeaderData().setCorrelationId(7), api.responseHeaderVersion(v), data, v));
    }

    /** Length prefix, header, message. */
    static ByteBuffer framed(Message header, short headerVersion, Message message, short version) {
        ByteBuffer h = MessageUtil.toByteBufferAccessor(header, headerVersion).buffer();
        ByteBuffer m = MessageUtil.toByteBufferAccessor(message, version).buffer();
        ByteBuffer all = ByteBuffer.allocate(4 + h.remaining() + m.remaining());
        all.putInt(h.remaining() + m.remaining()).put(h).put(m).flip();
        return all;
    }

    static ByteBuffer buffer(MemoryRecords records) {
        return records.buffer();
    }

    static void print(String what, ByteBuffer bytes) {
        byte[] b = new byte[bytes.remaining()];
        bytes.duplicate().get(b);
        System.out.println(what + " " + HexFormat.of().formatHex(b));
    }
}

//! Apache Kafka's own clients: one process for all seeds, spoken to over its standard input and output.
use crate::script::{Part, Place, Read, Who};
use crate::support::java::JavaProgram;
use crate::support::oracle::Rec;
use std::io::{BufReader, Read as _, Write as _};
use std::process::ChildStdout;

/// The process and its pipes; one order at a time.
pub struct Java(JavaProgram);

impl Java {
    pub fn start(bootstrap: &str) -> Self {
        Self(JavaProgram::start("tests/wire_diff/Peer.java", 512, bootstrap))
    }

    /// Writes a part of a script.
    pub fn write(&self, place: &Place, part: &Part, transactional_id: &str) -> Result<(), String> {
        assert_eq!(part.who, Who::Java);
        let mut order = vec![b'W'];
        put(&mut order, Some(place.topic.as_bytes()));
        put_int(&mut order, place.partition);
        put(&mut order, Some(part.codec.as_bytes()));
        put_int(&mut order, len(part.batch_bytes));
        put(&mut order, Some(transactional_id.as_bytes()));
        put_int(&mut order, len(part.runs.len()));
        for run in &part.runs {
            put_int(&mut order, run.end as i32);
            put_int(&mut order, len(run.records.len()));
            for record in &run.records {
                put_record(&mut order, record);
            }
        }
        self.order(&order, |_| ())
    }

    /// Reads each place to its end.
    pub fn read(&self, committed: bool, places: &[(Place, i64)]) -> Result<Vec<Read>, String> {
        let mut order = vec![b'R', u8::from(committed)];
        put_int(&mut order, len(places.len()));
        for (place, end) in places {
            put(&mut order, Some(place.topic.as_bytes()));
            put_int(&mut order, place.partition);
            order.extend(end.to_be_bytes());
        }
        self.order(&order, |from| {
            let mut reads = Vec::new();
            for _ in places {
                let (position, count) = (get_long(from), get_int(from));
                reads.push(Read { position, records: (0..count).map(|_| get_record(from)).collect() });
            }
            reads
        })
    }

    fn order<T>(&self, order: &[u8], answer: impl FnOnce(&mut BufReader<ChildStdout>) -> T) -> Result<T, String> {
        let mut pipes = self.0.pipes.lock().unwrap();
        pipes.0.write_all(order).unwrap();
        pipes.0.flush().unwrap();
        let mut failed = [0];
        pipes.1.read_exact(&mut failed).expect("the java process answers");
        if failed == [0] {
            return Ok(answer(&mut pipes.1));
        }
        Err(String::from_utf8(get(&mut pipes.1).unwrap()).unwrap())
    }
}

fn len(len: usize) -> i32 {
    i32::try_from(len).unwrap()
}

fn put_int(into: &mut Vec<u8>, number: i32) {
    into.extend(number.to_be_bytes());
}

fn put(into: &mut Vec<u8>, bytes: Option<&[u8]>) {
    put_int(into, bytes.map_or(-1, |bytes| len(bytes.len())));
    into.extend(bytes.unwrap_or_default());
}

fn put_record(into: &mut Vec<u8>, record: &Rec) {
    into.extend(record.timestamp.to_be_bytes());
    put(into, record.key.as_deref());
    put(into, record.value.as_deref());
    put_int(into, len(record.headers.len()));
    for (name, value) in &record.headers {
        put(into, Some(name.as_bytes()));
        put(into, value.as_deref());
    }
}

fn get_int(from: &mut BufReader<ChildStdout>) -> i32 {
    let mut bytes = [0; 4];
    from.read_exact(&mut bytes).unwrap();
    i32::from_be_bytes(bytes)
}

fn get_long(from: &mut BufReader<ChildStdout>) -> i64 {
    let mut bytes = [0; 8];
    from.read_exact(&mut bytes).unwrap();
    i64::from_be_bytes(bytes)
}

fn get(from: &mut BufReader<ChildStdout>) -> Option<Vec<u8>> {
    let mut bytes = vec![0; usize::try_from(get_int(from)).ok()?];
    from.read_exact(&mut bytes).unwrap();
    Some(bytes)
}

fn get_record(from: &mut BufReader<ChildStdout>) -> Rec {
    let (offset, timestamp, key, value) = (get_long(from), get_long(from), get(from), get(from));
    let count = get_int(from);
    let headers = (0..count).map(|_| (String::from_utf8(get(from).unwrap()).unwrap(), get(from))).collect();
    Rec { partition: 0, offset, timestamp, key, value, headers }
}

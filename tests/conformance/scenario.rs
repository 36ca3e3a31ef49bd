//! A scenario being made: its nodes, its input topics, its steps.
use super::random::Random;
use serde_json::{Map, Value, json};

pub const WORDS: &[&str] = &["a", "b", "ab", "ba", "c", "aa", "bb cc", "a b", "", "abc d", "xyz"];
pub const KEYS: &[&str] = &["a", "b", "c", "ab", "K"];

/// What both generators draw from and add to.
pub struct Scenario {
    pub random: Random,
    pub name: String,
    pub nodes: Vec<Value>,
    pub inputs: Vec<String>,
    /// Nodes so far; also numbers topics and stores.
    pub n: usize,
}

impl Scenario {
    pub fn new(seed: u64, name: String) -> Self {
        Self { random: Random::new(seed), name, nodes: Vec::new(), inputs: Vec::new(), n: 0 }
    }

    /// Adds a node, without the fields that are null; answers its id.
    pub fn add(&mut self, op: &str, fields: Value) -> String {
        self.n += 1;
        let id = format!("n{}", self.n);
        let mut node = Map::new();
        node.insert("id".to_owned(), id.clone().into());
        node.insert("op".to_owned(), op.into());
        if let Value::Object(fields) = fields {
            node.extend(fields.into_iter().filter(|(_, value)| !value.is_null()));
        }
        self.nodes.push(node.into());
        id
    }

    /// The value, so often.
    pub fn maybe(&mut self, often: f64, value: impl Into<Value>) -> Value {
        if self.random.random() < often { value.into() } else { Value::Null }
    }

    pub fn chance(&mut self, often: f64) -> bool {
        self.random.random() < often
    }

    pub fn choice<T: Copy>(&mut self, of: &[T]) -> T {
        self.random.choice(of)
    }

    /// The next input topic.
    pub fn topic(&mut self) -> String {
        let topic = format!("in{}", self.inputs.len() + 1);
        self.inputs.push(topic.clone());
        topic
    }

    pub fn stream(&mut self) -> String {
        let topic = self.topic();
        self.add("stream", json!({"topic": topic}))
    }

    pub fn table(&mut self) -> String {
        let topic = self.topic();
        let store = self.maybe(0.5, format!("store-{topic}"));
        self.add("table", json!({"topic": topic, "store": store}))
    }

    pub fn to(&mut self, of: &str, value: Option<&str>) {
        let topic = format!("out{}", self.n);
        self.add("to", json!({"of": of, "topic": topic, "value": value}));
    }

    pub fn table_to(&mut self, of: &str, value: Option<&str>, windowed: bool) {
        let stream = self.add("to_stream", json!({"of": of, "key_map": windowed.then_some("windowed")}));
        self.to(&stream, value);
    }

    /// A record of an input topic, or now and then a step of the wall clock.
    fn step(&mut self, time: &mut i64) -> Value {
        if self.chance(0.05) {
            return json!({"wall": self.choice(&[1, 10, 100])});
        }
        *time += self.choice(&[0, 0, 1, 1, 2, 5, 12]);
        let topic = self.inputs[self.random.below(self.inputs.len())].clone();
        let key = if self.chance(0.05) { None } else { Some(self.choice(KEYS)) };
        let value = if self.chance(0.1) { None } else { Some(self.choice(WORDS)) };
        let late = if self.chance(0.2) { self.choice(&[1, 4, 9, 30]) } else { 0 };
        let mut step = json!({"in": topic, "k": key, "v": value, "t": (*time - late).max(0)});
        if self.chance(0.1) {
            step["h"] = json!({"trace": self.choice(WORDS)});
        }
        step
    }

    pub fn build(mut self) -> Value {
        let mut time = 0;
        let steps: Vec<Value> = (0..self.random.between(5, 60)).map(|_| self.step(&mut time)).collect();
        json!({"name": self.name, "topology": self.nodes, "steps": steps})
    }
}

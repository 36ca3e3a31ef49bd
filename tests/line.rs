//! The line, held: counting and copying from a real Apache Kafka in a container that is hardly larger than the line.
//!
//! Without arguments the short form that `make test` runs; `--long` is `make test-long CASE=line`. Broker and generator
//! are outside of the container, the state is on disk, swap is off; the limit is 1.03 × line + 2 MiB for the kernel.
//!
//! Not libtest's harness: this binary is also the process under the line, and nothing else may run in that.
#![allow(unreachable_pub, clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout)]
#[path = "line/container.rs"]
mod container;
#[path = "line/job.rs"]
mod job;
#[path = "line/run.rs"]
mod run;
mod support;

use container::Container;
use job::{Figures, Job, Kind, Told};
use plimsoll::prelude::MIB;
use run::Outcome;
use support::broker::{Cluster, Options};
use support::load::{self, Load, Order};
use support::oracle;

plimsoll::install_allocator!();

/// What word count over topics of four partitions with one thread runs under, as `docs/memory.md` says. OpenSSL and
/// rustls are 8 MiB more of program.
const LOWEST_LINE: u64 = if cfg!(feature = "ssl") { 52 } else { 44 } * MIB;
/// Part of the line that may belong to no row.
const MOST_SLACK: f64 = 0.10;
/// Least rate at 64 MiB, as a part of that at 256.
const LEAST_RATE: f64 = 0.5;

/// One job: what is computed, from which topic, under which line.
#[derive(Clone, Copy, Debug)]
struct Case {
    kind: Kind,
    input: Input,
    line: u64,
    threads: usize,
    /// From a copy of the binary that no page of is in memory yet.
    fresh: bool,
}

impl Case {
    fn new(kind: Kind, input: Input, line: u64) -> Self {
        Self { kind, input, line, threads: 1, fresh: false }
    }
}

/// A topic and what it holds.
#[derive(Clone, Copy, Debug)]
struct Input {
    topic: &'static str,
    load: Load,
}

/// The broker and the inputs.
struct Bench {
    kafka: Cluster,
    random: Input,
    in_turn: Input,
    state: tempfile::TempDir,
}

fn main() {
    if let Ok(job) = std::env::var(job::JOB) {
        return job::main(&job);
    }
    let long = std::env::args().any(|arg| arg == "--long");
    let Some(bench) = Bench::new(long) else { return println!("test result: ok. 0 passed; 0 failed") };
    let passed = if long { bench.long() } else { bench.short() };
    println!("test result: ok. {passed} passed; 0 failed");
}

impl Bench {
    fn new(long: bool) -> Option<Self> {
        let kafka = Cluster::start(&Options { full_jit: long, heap_mib: 768, ..Options::default() })?;
        let load = |records, order| Load { partitions: 4, keys: 100_000, records, order };
        let (random, in_turn) = if long { (4_000_000, 1_000_000) } else { (300_000, 60_000) };
        let random = Input { topic: "random", load: load(random, Order::Random) };
        let in_turn = Input { topic: "in-turn", load: load(in_turn, Order::InTurn) };
        for Input { topic, load } in [random, in_turn] {
            oracle::create_topic(kafka.bootstrap(), topic, load.partitions, &[]);
            load::write(kafka.bootstrap(), topic, load, 0);
        }
        // Not /tmp where that is memory: pages of files on disk are the kernel's to give back.
        let state = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        Some(Self { kafka, random, in_turn, state })
    }

    fn short(&self) -> u32 {
        self.held(Case::new(Kind::Count, self.random, 64 * MIB));
        self.held(Case { threads: 2, fresh: true, ..Case::new(Kind::Pass, self.random, 64 * MIB) });
        self.lowest();
        3
    }

    fn long(&self) -> u32 {
        let lines = [64 * MIB, 128 * MIB, 256 * MIB];
        for kind in [Kind::Count, Kind::Pass] {
            let rates = lines.map(|line| {
                let case = Case { fresh: line == lines[0], ..Case::new(kind, self.random, line) };
                self.held(case).rate()
            });
            println!("{kind:?}: {rates:.0?} records/s at lines of 64, 128 and 256 MiB");
            assert!(rates[0] >= LEAST_RATE * rates[2], "{kind:?}: {rates:?}");
        }
        // Every record misses the overlay: its key was dropped for those that came since.
        self.held(Case::new(Kind::Count, self.in_turn, 60 * MIB));
        self.held(Case { threads: 2, ..Case::new(Kind::Words, self.random, 64 * MIB) });
        self.lowest();
        5
    }

    /// The lowest line that word count has a plan for, and that it runs under.
    fn lowest(&self) {
        let mut line = MIB;
        let figures = loop {
            match self.run(Case::new(Kind::Words, self.in_turn, line)).told {
                Told::TooSmall(needed) if needed > line => line = needed,
                Told::TooSmall(needed) => panic!("a line of {line} bytes was refused, {needed} would do"),
                Told::Failed(why) => panic!("word count under {line} bytes: {why}"),
                Told::Done(figures) => break figures,
            }
        };
        println!("the lowest line of word count: {:.1} MiB ({line} bytes)", line as f64 / MIB as f64);
        assert_eq!(figures.line, line);
        assert!(line <= LOWEST_LINE, "{line} bytes, documented are {LOWEST_LINE}");
        self.held(Case { fresh: true, ..Case::new(Kind::Words, self.random, line) });
    }

    /// Runs a job and asserts every claim about it.
    fn held(&self, case: Case) -> Figures {
        let (line, outcome) = (case.line, self.run(case));
        let Told::Done(figures) = &outcome.told else { panic!("{case:?}: {outcome:?}") };
        print(case, figures, &outcome);
        let bytes = line as f64;
        assert_eq!(figures.rows + figures.slack, line, "rows and slack are the line");
        assert!(figures.slack as f64 <= MOST_SLACK * bytes, "slack {}", figures.slack);
        assert!(outcome.peaks.looks >= 10, "{:?}", outcome.peaks);
        assert!(outcome.peaks.rss <= line, "peak RSS {} over the line {line}", outcome.peaks.rss);
        assert_eq!(outcome.charged.map_or(0, |charged| charged.oom_kills), 0, "killed for memory");
        let over = Self::over(figures);
        assert!(over.is_empty(), "{case:?}: {over:#?}");
        *outcome.done()
    }

    /// Modules and parts of the process that had more than their rows.
    fn over(figures: &Figures) -> Vec<String> {
        let app = figures.modules.iter().find(|module| module.module == "app").map_or(0, |app| app.row);
        let modules = figures.modules.iter().map(|m| (m.module.as_str(), m.committed_peak, m.row));
        let outside = [
            ("pages of files", figures.file + figures.data, figures.program_row),
            ("stacks", figures.stacks, figures.stacks_row),
            // What App allocated before it had a window lies beside the allocator's tables.
            ("allocator tables", figures.allocator, figures.tables_row + app),
        ];
        let over = modules.chain(outside).filter(|(_, peak, row)| peak > row);
        over.map(|(name, peak, row)| format!("{name}: {peak} bytes, the rows are {row}")).collect()
    }

    fn run(&self, case: Case) -> Outcome {
        let Case { kind, input, line, threads, fresh } = case;
        let name = self.kafka.unique(&format!("{kind:?}-{}", line / MIB).to_lowercase());
        let output = format!("{name}-out");
        oracle::create_topic(self.kafka.bootstrap(), &output, input.load.partitions, &[]);
        let limit = line + line * 3 / 100 + 2 * MIB;
        let container = Container::new(&name, limit).map_err(|why| support::skipped(&why)).ok();
        let job = Job {
            kind,
            bootstrap: self.kafka.bootstrap().to_owned(),
            application: name,
            input: input.topic.to_owned(),
            output: output.clone(),
            records: input.load.records,
            line,
            threads,
            state: self.state.path().to_owned(),
        };
        let program = if fresh { run::fresh_copy(self.state.path()) } else { std::env::current_exe().unwrap() };
        let outcome = run::run(&job, &program, container);
        if matches!(outcome.told, Told::Done(_)) {
            self.check(kind, input.load, &output);
        }
        outcome
    }

    /// Whether the output is right: every count, or every record.
    fn check(&self, kind: Kind, load: Load, output: &str) {
        if kind == Kind::Pass {
            let (mut records, mut right) = (0, 0);
            load::read(self.kafka.bootstrap(), output, load.partitions, |key, value| {
                records += 1;
                right += u64::from(value.starts_with(key) && value.len() == load::VALUE_BYTES);
            });
            assert_eq!((records, right), (load.records, load.records), "{output}");
            return;
        }
        let (counts, records) = load::last_counts(self.kafka.bootstrap(), output, load);
        let wrong = counts.iter().zip(load.counts()).filter(|(found, right)| *found != right).count();
        assert_eq!(wrong, 0, "{output}: keys whose last count is wrong, of {}", load.keys);
        println!("{output}: all {} counts are right, {records} updates were written", load.keys);
    }
}

/// The plan beside the peaks.
fn print(case: Case, figures: &Figures, outcome: &Outcome) {
    let mib = |bytes: u64| bytes as f64 / MIB as f64;
    println!("{}", figures.plan);
    println!("{:<12} {:>10} {:>10} {:>10} {:>10}  MiB", "module", "rows", "committed", "resident", "live");
    for m in &figures.modules {
        let (row, committed, resident) = (mib(m.row), mib(m.committed_peak), mib(m.resident_peak));
        let (live, denied) = (mib(m.live), m.denied);
        println!("{:<12} {row:>10.2} {committed:>10.2} {resident:>10.2} {live:>10.2}  denied {denied}", m.module);
    }
    let outside = [
        ("program", figures.program_row, figures.file + figures.data),
        ("tables", figures.tables_row, figures.allocator),
        ("stacks", figures.stacks_row, figures.stacks),
    ];
    for (name, row, at_end) in outside {
        println!("{name:<12} {:>10.2} {:>10} {:>10.2}", mib(row), "", mib(at_end));
    }
    let (peaks, unexplained) = (outcome.peaks, figures.unexplained as f64 / MIB as f64);
    println!(
        "{:?} of {} under {:.1} MiB, {} threads: {:.0} records/s, {} commits; \
         peak RSS {:.2} MiB, anonymous {:.2}, unexplained {unexplained:.2}",
        case.kind,
        case.input.topic,
        mib(figures.line),
        case.threads,
        figures.rate(),
        figures.commits,
        mib(peaks.rss),
        mib(peaks.anonymous),
    );
    if let Some(c) = outcome.charged {
        println!(
            "container: anon {:.2} MiB, file {:.2}, kernel {:.2}, sock {:.2}; at its limit {} times, {} killed",
            mib(c.anon),
            mib(c.file),
            mib(c.kernel),
            mib(c.sock),
            c.at_limit,
            c.oom_kills
        );
    }
}

impl Outcome {
    fn done(self) -> Box<Figures> {
        match self.told {
            Told::Done(figures) => figures,
            told => panic!("{told:?}"),
        }
    }
}

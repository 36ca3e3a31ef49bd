//! Claims of the plan, over word count and over random demands.
use super::super::{Demand, Line, Machine};
use super::*;

const MIB: u64 = 1 << 20;

fn line(bytes: u64) -> Line {
    Line { bytes, app: None, producers: None, consumers: None, tracked: true }
}

fn word_count(mib: u64) -> Demand {
    Demand::word_count(line(mib * MIB))
}

#[test]
fn word_count_runs_under_48_mib() {
    let lowest = lowest_line(&word_count(1));
    assert!(lowest <= 48 * MIB, "{}", Bytes(lowest));
    plan(&word_count(48)).unwrap();
}

#[test]
fn rows_and_slack_add_up_to_the_line_and_the_slack_is_small() {
    for mib in [48, 64, 128, 256, 1024, 16384] {
        let plan = plan(&word_count(mib)).unwrap();
        let rows: u64 = plan.rows().iter().map(|row| row.bytes).sum();
        assert_eq!(rows + plan.slack(), mib * MIB);
        assert!(plan.slack() * 10 <= mib * MIB, "{mib} MiB: {}", plan.slack());
    }
}

#[test]
fn a_line_too_small_is_refused_with_the_floors_by_row_and_the_line_that_would_do() {
    let PlanError::LineTooSmall { line, needed, floors } = plan(&word_count(8)).unwrap_err() else { panic!() };
    assert_eq!(line, 8 * MIB);
    assert_eq!(needed, lowest_line(&word_count(8)));
    assert_eq!(floors[0].row, RowId::Program, "largest first");
    assert!(floors.iter().any(|floor| floor.row == RowId::Overlay));
    let text = plan(&word_count(8)).unwrap_err().to_string();
    for word in ["8.0 MiB", "too small", "raise it to at least", "program", "block cache", "frames"] {
        assert!(text.contains(word), "{word}: {text}");
    }
}

#[test]
fn the_lowest_line_has_a_plan_and_an_eighth_of_a_mib_less_has_none() {
    let lowest = lowest_line(&word_count(1));
    let mut demand = word_count(1);
    demand.line.bytes = lowest;
    plan(&demand).unwrap();
    demand.line.bytes = lowest - STEP;
    plan(&demand).unwrap_err();
}

#[test]
fn the_users_parts_are_kept_to_the_byte() {
    let mut demand = word_count(256);
    demand.line = Line { app: Some(32 * MIB), producers: Some(20 * MIB), consumers: Some(40 * MIB), ..demand.line };
    let plan = plan(&demand).unwrap();
    assert_eq!(plan.bytes(RowId::App), 32 * MIB);
    let producers = plan.module_bytes(Module::Producer);
    assert!(producers <= 20 * MIB && producers + 4096 > 20 * MIB, "{producers}");
    let consumers = [Module::Consumer, Module::Restore, Module::Batch].map(|m| plan.module_bytes(m));
    let consumers: u64 = consumers.iter().sum();
    assert!(consumers <= 40 * MIB && consumers + 4096 > 40 * MIB, "{consumers}");
}

#[test]
fn a_part_smaller_than_its_floors_is_refused_by_name() {
    let mut demand = word_count(256);
    demand.line.producers = Some(1024);
    let error = plan(&demand).unwrap_err();
    assert!(matches!(error, PlanError::ShareTooSmall { share: "producers", given: 1024, .. }), "{error}");
    demand.line.producers = None;
    demand.line.consumers = Some(300 * MIB);
    assert!(matches!(plan(&demand), Err(PlanError::LineTooSmall { .. })), "S >= P + C + floors");
}

#[test]
fn what_no_row_can_use_is_a_row_of_its_own() {
    let mut demand = word_count(4096);
    (demand.stores, demand.families, demand.restores) = (0, 0, false);
    let plan = plan(&demand).unwrap();
    assert!(plan.bytes(RowId::Spare) > 1024 * MIB);
    assert_eq!((plan.bytes(RowId::Overlay), plan.bytes(RowId::Memtables)), (0, 0));
    assert!(plan.slack() * 10 <= plan.line());
}

#[test]
fn no_thread_is_refused() {
    let mut demand = word_count(64);
    demand.threads = 0;
    assert_eq!(plan(&demand), Err(PlanError::NoThreads));
}

#[test]
fn the_table_shows_every_row_the_slack_and_the_line() {
    let plan = plan(&word_count(64)).unwrap();
    let table = plan.to_string();
    for row in plan.rows() {
        assert!(table.contains(row.id.name()) && table.contains(row.when_full), "{}", row.id);
    }
    assert!(table.contains("slack") && table.contains("64.0 MiB"), "{table}");
}

#[test]
fn the_documentation_explains_every_row_and_module() {
    let page = include_str!("../../docs/memory.md");
    for id in RowId::ALL {
        assert!(page.contains(&format!("| {} |", id.name())), "row {id}");
    }
    for module in Module::ALL {
        assert!(page.contains(&format!("| {} | ", module.name())), "module {module:?}");
    }
}

fn random_demand(random: &mut fastrand::Rng) -> Demand {
    let magnitude = random.u32(20..=40);
    let bytes = random.u64(1..=1 << magnitude);
    let part = |random: &mut fastrand::Rng| random.bool().then(|| random.u64(0..=bytes / 2));
    let (app, producers, consumers) = (part(random), part(random), part(random));
    let families = random.u32(0..=40);
    Demand {
        line: Line { bytes, app, producers, consumers, tracked: random.bool() },
        machine: Machine { program_bytes: random.u64(1 << 20..=64 << 20) },
        threads: random.u32(1..=16),
        tasks: random.u32(1..=2_000),
        nodes: random.u32(1..=200),
        inputs: random.u32(1..=4_000),
        outputs: random.u32(0..=4_000),
        stores: families + random.u32(0..=4),
        families,
        restores: random.bool(),
        global_tables: random.u32(0..=2),
        brokers: random.u32(1..=64),
        tls: random.bool(),
        max_message_bytes: random.u32(1_024..=16 << 20),
        compression_bytes: random.u64(0..=4 << 20),
    }
}

/// Claims that hold for every plan.
fn check(demand: &Demand, plan: &Plan) {
    let rows: u64 = plan.rows().iter().map(|row| row.bytes).sum();
    assert_eq!(rows + plan.slack(), demand.line.bytes, "{demand:?}");
    let ours = demand.line.producers.is_none() && demand.line.consumers.is_none();
    assert!(plan.slack() * 10 <= plan.line() || !ours, "{demand:?}");
    for row in plan.rows() {
        assert!(row.bytes >= row.floor, "{}: {demand:?}", row.id);
    }
    let (sizes, threads) = (plan.sizes(), u64::from(demand.threads));
    let pool = |count: usize, bytes: usize| (count * bytes) as u64;
    assert!(pool(sizes.frames_per_thread, sizes.frame_bytes) * threads <= plan.bytes(RowId::Frames));
    assert!(pool(sizes.batches_per_thread, sizes.batch_bytes) * threads <= plan.bytes(RowId::Batches));
    assert!(pool(sizes.restore_frames, sizes.restore_frame_bytes) <= plan.bytes(RowId::Restore));
    assert!(sizes.arena_bytes as u64 * threads <= plan.bytes(RowId::Arenas));
    assert!(sizes.overlay_bytes_per_thread as u64 * threads <= plan.bytes(RowId::Overlay));
    assert!(sizes.frames_per_thread >= 3 && sizes.batches_per_thread >= 16, "{demand:?}");
    assert!(sizes.oversize_bytes >= demand.max_message_bytes as usize);
    assert_eq!(sizes.restore_frames >= 3, demand.restores);
}

#[test]
fn every_plan_keeps_sum_and_floors_and_more_line_makes_no_row_smaller() {
    let mut random = fastrand::Rng::with_seed(0x9115_0110);
    let (mut planned, mut refused) = (0, 0);
    for _ in 0..4_000 {
        let demand = random_demand(&mut random);
        match plan(&demand) {
            Ok(small) => {
                planned += 1;
                check(&demand, &small);
                let mut more = demand;
                let magnitude = random.u32(1..=38);
                more.line.bytes += random.u64(1..=1 << magnitude);
                let large = plan(&more).unwrap();
                check(&more, &large);
                for row in small.rows().iter().filter(|row| row.id != RowId::Spare) {
                    assert!(large.bytes(row.id) >= row.bytes, "{}: {demand:?}", row.id);
                }
            }
            Err(PlanError::LineTooSmall { needed, .. }) => {
                refused += 1;
                let mut enough = demand;
                enough.line.bytes = needed;
                let plan = plan(&enough).unwrap();
                check(&enough, &plan);
            }
            Err(PlanError::ShareTooSmall { .. }) => refused += 1,
            Err(other) => panic!("{other}: {demand:?}"),
        }
    }
    assert!(planned > 500 && refused > 500, "{planned} planned, {refused} refused");
}

//! The membership against a real broker; what a broker answers to commits, by the mock cluster.
use super::*;
use crate::client::admin::Admin;
use crate::client::offered::ask_offered;
use crate::ffi::kafka_admin::probe::GroupState;
use crate::ffi::kafka_conf::HandleSettings;
use crate::ffi::kafka_mock::MockCluster;
use crate::net::Security;
use crate::support;

const PATIENCE: Duration = Duration::from_secs(30);
/// API key of OffsetCommit.
const OFFSET_COMMIT: i16 = 8;

fn join(bootstrap: &str, group: &str, topics: &[&str], settings: &[(&str, &str)]) -> Membership {
    let mut user = vec![
        ("bootstrap.servers".to_owned(), bootstrap.to_owned()),
        ("session.timeout.ms".to_owned(), "6000".to_owned()),
        ("heartbeat.interval.ms".to_owned(), "200".to_owned()),
    ];
    user.extend(settings.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())));
    let settings = HandleSettings {
        user: &user,
        owned: &[],
        group_id: group,
        client_id: "plimsoll-test",
        instance_id: None,
        read_committed: false,
    };
    let mut membership = Membership::new(Arc::new(Handle::start(&settings).unwrap()));
    membership.subscribe(topics).unwrap();
    membership
}

/// Polls until `want` picks an event; errors that heal by themselves are passed over.
fn await_event<T>(member: &mut Membership, mut want: impl FnMut(&MembershipEvent) -> Option<T>) -> T {
    let deadline = Instant::now() + PATIENCE;
    let mut seen = Vec::new();
    loop {
        assert!(Instant::now() < deadline, "only {seen:?}");
        let Some(event) = member.poll(Duration::from_millis(50)) else { continue };
        if let Some(found) = want(&event) {
            return found;
        }
        seen.push(event);
    }
}

fn await_assign(member: &mut Membership) -> (Assignment, Epoch) {
    let assignment = await_event(member, |event| match event {
        MembershipEvent::Assign(assignment) => Some(assignment.clone()),
        _ => None,
    });
    let Assigned::Started(epoch) = member.complete_assign().unwrap() else { panic!("superseded") };
    (assignment, epoch)
}

fn await_revoke(member: &mut Membership) -> Vec<TopicPartition> {
    await_event(member, |event| match event {
        MembershipEvent::Revoke { partitions } => Some(partitions.clone()),
        _ => None,
    })
}

fn await_outcome(member: &mut Membership, of: Ticket) -> CommitOutcome {
    await_event(member, |event| match event {
        MembershipEvent::Committed { ticket, outcome } if *ticket == of => Some(*outcome),
        _ => None,
    })
}

fn commit(member: &mut Membership, epoch: Epoch, partition: &TopicPartition, offset: i64) -> CommitOutcome {
    let metadata = OffsetsMetadata::at(1_700_000_000_000);
    let ticket = member.commit(epoch, &[CommitOffset { partition, offset, metadata: &metadata }]).unwrap();
    await_outcome(member, ticket)
}

#[test]
fn two_members_share_a_group_and_a_late_commit_is_refused() {
    let Some(kafka) = support::kafka() else { return };
    let (topic, group) = (kafka.unique("share"), kafka.unique("group"));
    support::oracle::create_topic(kafka.bootstrap(), &topic, 4, &[]);
    let zero = TopicPartition::new(topic.as_str(), 0);

    let mut first = join(kafka.bootstrap(), &group, &[&topic], &[]);
    let (alone, early) = await_assign(&mut first);
    assert_eq!(alone.partitions, (0..4).map(|p| TopicPartition::new(topic.as_str(), p)).collect::<Vec<_>>());
    assert_eq!(first.group().map(|g| (g.generation, g.member_id)), Some((alone.generation, alone.member_id)));
    assert_eq!(commit(&mut first, early, &zero, 5), CommitOutcome::Committed);

    let mut second = join(kafka.bootstrap(), &group, &[&topic], &[]);
    assert_eq!(await_revoke(&mut first).len(), 4);
    // Between the revocation and its answer the old epoch still commits: what the tasks finished counts.
    assert_eq!(commit(&mut first, early, &zero, 6), CommitOutcome::Committed);
    first.complete_revoke().unwrap();
    let metadata = OffsetsMetadata::default();
    let late = [CommitOffset { partition: &zero, offset: 99, metadata: &metadata }];
    assert!(matches!(first.commit(early, &late), Err(CommitRefused::StaleEpoch { .. })));

    let other = std::thread::spawn(move || {
        let assigned = await_assign(&mut second);
        (second, assigned)
    });
    let (kept, now) = await_assign(&mut first);
    let (second, (moved, _)) = other.join().unwrap();
    assert_eq!((kept.partitions.len(), moved.partitions.len()), (2, 2));
    assert_eq!(kept.generation, moved.generation);
    let mut all: Vec<_> = kept.partitions.iter().chain(&moved.partitions).cloned().collect();
    all.sort();
    assert_eq!(all, alone.partitions);
    assert!(now > early);
    assert!(matches!(first.commit(early, &late), Err(CommitRefused::StaleEpoch { .. })));

    let offered =
        ask_offered(&[kafka.bootstrap().to_owned()], &Security::default(), "plimsoll-test", PATIENCE).unwrap();
    let view = Admin::new(Arc::clone(&first.handle), offered, PATIENCE).group(&group).unwrap();
    assert_eq!(view.state, GroupState::Stable);
    for assignment in [&kept, &moved] {
        let member = view.members.iter().find(|member| member.member_id == assignment.member_id).unwrap();
        assert_eq!((&member.assignment, &*member.client_id), (&assignment.partitions, "plimsoll-test"));
    }

    let found = second.committed(&alone.partitions, PATIENCE).unwrap();
    let metadata = OffsetsMetadata::at(1_700_000_000_000);
    assert_eq!(found, [Some(CommittedOffset { offset: 6, metadata }), None, None, None]);
    let seen = support::oracle::committed(kafka.bootstrap(), &group, &topic, 1);
    assert_eq!(seen, [Some((6, "AgAAAYvP5WgA".to_owned()))]);

    assert_eq!(second.close(PATIENCE), Closed::Left);
    assert_eq!(await_revoke(&mut first).len(), 2, "the group notices at once that a member left");
    assert_eq!(first.close(PATIENCE), Closed::Left);

    let mut third = join(kafka.bootstrap(), &group, &[&topic], &[]);
    assert_eq!(await_assign(&mut third).0.partitions.len(), 4, "an empty group is taken up again");
    assert_eq!(third.close(PATIENCE), Closed::Left);
}

#[test]
fn a_member_that_does_not_poll_loses_its_assignment_and_comes_back() {
    let Some(kafka) = support::kafka() else { return };
    let (topic, group) = (kafka.unique("lost"), kafka.unique("group"));
    support::oracle::create_topic(kafka.bootstrap(), &topic, 1, &[]);
    let short = [("session.timeout.ms", "1000"), ("max.poll.interval.ms", "1000")];
    let mut member = join(kafka.bootstrap(), &group, &[&topic], &short);
    let (_, epoch) = await_assign(&mut member);
    std::thread::sleep(Duration::from_millis(2500));
    let lost = await_event(&mut member, |event| match event {
        MembershipEvent::Lost { partitions } => Some(partitions.clone()),
        _ => None,
    });
    let metadata = OffsetsMetadata::default();
    let late = [CommitOffset { partition: &lost[0], offset: 1, metadata: &metadata }];
    assert!(matches!(member.commit(epoch, &late), Err(CommitRefused::StaleEpoch { .. })));
    member.complete_revoke().unwrap();
    let (again, epoch) = await_assign(&mut member);
    assert_eq!(again.partitions, lost);
    assert_eq!(commit(&mut member, epoch, &lost[0], 1), CommitOutcome::Committed);
    assert_eq!(member.close(PATIENCE), Closed::Left);
}

#[test]
fn a_brokers_answer_to_a_commit_decides_what_becomes_of_the_tasks() {
    let mock = MockCluster::start(1).unwrap();
    mock.create_topic("words", 1).unwrap();
    let words = TopicPartition::new("words", 0);
    let cases = [
        (Code::REBALANCE_IN_PROGRESS, CommitOutcome::RebalanceInProgress),
        (Code::ILLEGAL_GENERATION, CommitOutcome::IllegalGeneration),
        (Code::UNKNOWN_MEMBER_ID, CommitOutcome::UnknownMember),
        (Code(30), CommitOutcome::Failed(Code(30))),
        (Code::NOT_COORDINATOR, CommitOutcome::Committed),
        (Code::FENCED_INSTANCE_ID, CommitOutcome::FencedInstance),
    ];
    for (code, expected) in cases {
        // A group each: the mock cluster lets a member that was lost rejoin only after its session.
        let mut member = join(mock.bootstrap_servers(), code.name(), &["words"], &[]);
        let (_, epoch) = await_assign(&mut member);
        mock.fail_next(OFFSET_COMMIT, &[code]);
        let metadata = OffsetsMetadata::default();
        let offsets = [CommitOffset { partition: &words, offset: 1, metadata: &metadata }];
        member.commit(epoch, &offsets).unwrap();
        // The loss that some answers bring may arrive before the answer.
        let loses = matches!(expected, CommitOutcome::IllegalGeneration | CommitOutcome::UnknownMember);
        let (mut answer, mut lost) = (None, false);
        await_event(&mut member, |event| {
            match event {
                MembershipEvent::Committed { outcome, .. } => answer = Some(*outcome),
                MembershipEvent::Lost { .. } => lost = true,
                _ => {}
            }
            (answer.is_some() && lost == loses).then_some(())
        });
        assert_eq!(answer, Some(expected), "{code}");
        assert_eq!(member.handle.fatal().is_some(), expected == CommitOutcome::FencedInstance, "{code}");
        member.close(Duration::from_secs(2));
    }
    assert_eq!(CommitOutcome::of(Code::WAIT_COORD), CommitOutcome::Retriable(Code::WAIT_COORD));
}

#[test]
fn without_a_broker_it_keeps_trying_says_so_and_closes_when_asked() {
    let mut member = join("127.0.0.1:1", "nobody", &["words"], &[]);
    for _ in 0..2 {
        let error = await_event(&mut member, |event| match event {
            MembershipEvent::Error(error) => Some(error.clone()),
            _ => None,
        });
        assert!(!error.fatal, "{error:?}");
        assert!([Code::TRANSPORT, Code::ALL_BROKERS_DOWN].contains(&error.code), "{error:?}");
    }
    let asked = Instant::now();
    member.close(Duration::from_secs(3));
    assert!(asked.elapsed() < Duration::from_secs(4), "closing took {:?}", asked.elapsed());
}

#[test]
fn an_event_wakes_the_thread_that_sleeps_elsewhere() {
    let mock = MockCluster::start(1).unwrap();
    mock.create_topic("words", 1).unwrap();
    let mut member = join(mock.bootstrap_servers(), "woken", &["words"], &[]);
    let sleeper = std::thread::current();
    member.on_event(Box::new(move || sleeper.unpark()));
    let deadline = Instant::now() + PATIENCE;
    loop {
        assert!(Instant::now() < deadline, "nothing woke the thread");
        std::thread::park_timeout(PATIENCE);
        let mut assigned = false;
        while let Some(event) = member.poll(Duration::ZERO) {
            assigned |= matches!(event, MembershipEvent::Assign(_));
        }
        if assigned {
            break;
        }
    }
    member.complete_assign().unwrap();
    assert_eq!(member.close(PATIENCE), Closed::Left);
}

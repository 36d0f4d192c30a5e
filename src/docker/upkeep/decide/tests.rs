use std::collections::HashMap;
use std::time::Instant;

use super::super::super::owner::Marks;
use super::super::holds::Holds;
use super::*;

const GRACE: Duration = Duration::from_secs(60);
const RENEWAL: Duration = Duration::from_secs(30);

/// A moment of the table, in seconds.
fn at(seconds: i64) -> EngineTime {
    EngineTime::from_epoch_seconds(1_000_000 + seconds)
}

/// An owner elsewhere of which only its lost first lease is known.
fn unknown() -> OwnerFacts {
    OwnerFacts {
        is_own: false,
        proof: Proof::Nothing,
        lease_seen: None,
        first_lease: Some(at(-1000)),
        renewal: RENEWAL,
        missing_for: None,
    }
}

/// What is seen, how it differs from an unknown owner, and what must come of it.
type Row<'a> = (&'a str, fn(&mut OwnerFacts), &'a dyn Fn(&Life) -> bool);

#[test]
fn d17_death_has_to_be_proven() {
    let again = Life::LookAgain(RENEWAL + GRACE);
    let seconds = |seconds| Some(Duration::from_secs(seconds));
    let is_alive = |life: &Life| matches!(life, Life::Alive(_));
    let is_dead = |life: &Life| matches!(life, Life::Dead(_));
    let is_unsure = |life: &Life| matches!(life, Life::Unsure(_));
    let table: [Row<'_>; 16] = [
        ("this process", |facts| facts.is_own = true, &is_alive),
        (
            "this process, whatever else is seen",
            |facts| {
                facts.is_own = true;
                facts.proof = Proof::Dead;
                facts.lease_seen = Some(at(-1000));
            },
            &is_alive,
        ),
        ("a locked file", |facts| facts.proof = Proof::Alive, &is_alive),
        (
            "a locked file beats a lease that has ended: the owner is stopped",
            |facts| {
                facts.proof = Proof::Alive;
                facts.lease_seen = Some(at(-1000));
            },
            &is_alive,
        ),
        ("a free file", |facts| facts.proof = Proof::Dead, &is_dead),
        (
            "a free file beats a lease that holds: it died at once",
            |facts| {
                facts.proof = Proof::Dead;
                facts.lease_seen = Some(at(1000));
            },
            &is_dead,
        ),
        (
            "a lease that holds",
            |facts| facts.lease_seen = Some(at(1)),
            &is_alive,
        ),
        (
            "a lease within its grace",
            |facts| facts.lease_seen = Some(at(-59)),
            &is_unsure,
        ),
        (
            "a lease beyond its grace",
            |facts| facts.lease_seen = Some(at(-60)),
            &is_dead,
        ),
        (
            "a first lease that holds, none seen",
            |facts| facts.first_lease = Some(at(1)),
            &is_alive,
        ),
        (
            "a first lease within its grace, none seen",
            |facts| facts.first_lease = Some(at(-59)),
            &is_unsure,
        ),
        (
            "no lease is named anywhere",
            |facts| facts.first_lease = None,
            &is_unsure,
        ),
        ("none seen, looked once", |_| {}, &|life: &Life| *life == again),
        (
            "none seen in two looks that are too close",
            |facts| facts.missing_for = Some(Duration::from_secs(89)),
            &|life: &Life| *life == again,
        ),
        (
            "none seen in two looks that are far enough apart",
            |facts| facts.missing_for = Some(Duration::from_secs(90)),
            &is_dead,
        ),
        (
            "none seen in two looks, but a first lease holds",
            |facts| {
                facts.missing_for = Some(Duration::from_secs(1000));
                facts.first_lease = Some(at(1));
            },
            &is_alive,
        ),
    ];
    for (what, change, expected) in table {
        let mut facts = unknown();
        change(&mut facts);
        let life = judge(&facts, at(0), GRACE);
        assert!(expected(&life), "{what}: {life:?}");
    }
    // A longer renewal needs a longer look.
    let slow = OwnerFacts {
        renewal: Duration::from_secs(600),
        missing_for: seconds(659),
        ..unknown()
    };
    assert_eq!(
        judge(&slow, at(0), GRACE),
        Life::LookAgain(Duration::from_secs(660))
    );
}

fn object(kind: ObjectKind, labels: &[(&str, &str)]) -> Object {
    let labels: HashMap<String, String> = labels
        .iter()
        .map(|(suffix, value)| (format!("gym-sandbox.{suffix}"), (*value).to_owned()))
        .collect();
    Object {
        kind,
        id: "id".to_owned(),
        name: "name".to_owned(),
        marks: Marks::read(&labels),
        labels,
        image: None,
        state: Some(State::RUNNING),
        made: None,
    }
}

fn look(at_local: Instant, objects: Vec<Object>) -> Look {
    Look {
        now: at(0),
        at: at_local,
        objects,
    }
}

#[test]
fn d17_what_all_objects_of_an_owner_say_counts() {
    let (early, late) = (at(-500).to_rfc3339(), at(500).to_rfc3339());
    let lease = |end: &str| {
        object(
            ObjectKind::Volume,
            &[
                ("owner", "o"),
                ("kind", "lease"),
                ("lease", end),
                ("renewal", "45"),
            ],
        )
    };
    let sandbox = |end: &str| {
        object(
            ObjectKind::Container,
            &[("owner", "o"), ("kind", "sandbox"), ("lease", end)],
        )
    };
    let unmarked = object(ObjectKind::Network, &[("owner", "o")]);
    let start = Instant::now();
    let facts = |objects: Vec<Object>, earlier: Option<&Look>| {
        let now = look(start + Duration::from_secs(100), objects);
        owners(&now, earlier, "me", RENEWAL, |_| Proof::Nothing)
            .remove("o")
            .unwrap()
    };
    let found = facts(vec![sandbox(&early), sandbox(&late)], None);
    assert_eq!((found.lease_seen, found.first_lease), (None, Some(at(500))));
    assert_eq!((found.renewal, found.missing_for), (RENEWAL, None));
    // The latest lease counts, and its renewal.
    let found = facts(vec![sandbox(&early), lease(&late), lease(&early)], None);
    assert_eq!(found.lease_seen, Some(at(500)));
    assert_eq!(found.renewal, Duration::from_secs(45));
    // An object that names no lease takes the proof away.
    assert_eq!(facts(vec![sandbox(&early), unmarked], None).first_lease, None);
    // Two looks prove something only when neither has seen a lease.
    let missed = look(start, vec![sandbox(&early)]);
    assert_eq!(
        facts(vec![sandbox(&early)], Some(&missed)).missing_for,
        Some(Duration::from_secs(100))
    );
    let seen = look(start, vec![sandbox(&early), lease(&early)]);
    assert_eq!(facts(vec![sandbox(&early)], Some(&seen)).missing_for, None);
    assert!(
        owners(&missed, None, "o", RENEWAL, |_| Proof::Nothing)["o"].is_own,
        "this process knows itself"
    );
}

#[test]
fn d16_d17_what_goes_with_a_dead_owner_and_what_stays() {
    let (early, late) = (at(-500).to_rfc3339(), at(500).to_rfc3339());
    let (alive, dead) = (Some(Life::Alive("a")), Some(Life::Dead("d")));
    let plain = object(ObjectKind::Container, &[("owner", "o")]);
    let expired = object(ObjectKind::Container, &[("owner", "o"), ("expires", &early)]);
    let lasting = object(ObjectKind::Container, &[("owner", "o"), ("expires", &late)]);
    let kept = object(
        ObjectKind::Container,
        &[("owner", "o"), ("kept", "1"), ("lease", &early)],
    );
    let kept_and_expired = object(
        ObjectKind::Container,
        &[("owner", "o"), ("kept", "1"), ("expires", &early)],
    );
    let half_made = Object {
        state: Some(State::CREATED),
        ..kept.clone()
    };
    let making = Object {
        state: Some(State::CREATED),
        ..object(
            ObjectKind::Container,
            &[("owner", "o"), ("kept", "1"), ("lease", &late)],
        )
    };
    let kept_network = object(ObjectKind::Network, &[("owner", "o"), ("kept", "1")]);
    let shared = object(ObjectKind::Volume, &[("kind", "shared")]);
    let filling = |age: i64| Object {
        state: Some(State::CREATED),
        made: Some(at(-age)),
        ..object(ObjectKind::Container, &[("kind", "shared")])
    };
    let owned_filling = Object {
        state: Some(State::CREATED),
        made: Some(at(-1)),
        ..object(ObjectKind::Container, &[("kind", "shared"), ("owner", "o")])
    };
    let nobodys = object(ObjectKind::Container, &[]);
    let goes = |fate: Fate| matches!(fate, Fate::Remove(_));
    for (what, object, owner, removed) in [
        ("a live owner's", &plain, alive, false),
        ("a dead owner's", &plain, dead, true),
        ("an unsure owner's", &plain, Some(Life::Unsure("u")), false),
        (
            "one to look at again",
            &plain,
            Some(Life::LookAgain(GRACE)),
            false,
        ),
        ("expired, of a live owner", &expired, alive, true),
        ("not expired, of a live owner", &lasting, alive, false),
        ("not expired, of a dead owner", &lasting, dead, true),
        ("kept, of a dead owner", &kept, dead, false),
        ("kept and expired", &kept_and_expired, dead, true),
        ("to be kept, but never started", &half_made, dead, true),
        ("to be kept, being made", &making, dead, false),
        ("a kept network", &kept_network, dead, false),
        ("shared", &shared, None, false),
        ("a filling that is under way", &filling(59), None, false),
        ("a filling that was interrupted", &filling(61), None, true),
        ("a live owner's filling", &owned_filling, alive, false),
        ("a dead owner's filling", &owned_filling, dead, true),
        ("nobody's", &nobodys, None, false),
    ] {
        let fate = fate(object, owner, None, at(0), KeptSandboxes::Leave);
        assert_eq!(goes(fate), removed, "{what}: {fate:?}");
    }
    assert!(goes(fate(&kept, dead, None, at(0), KeptSandboxes::Remove)));
    assert!(!goes(fate(&plain, alive, None, at(0), KeptSandboxes::Remove)));
    assert!(!goes(fate(&shared, None, None, at(0), KeptSandboxes::Remove)));
}

#[test]
fn d35_what_a_living_process_has_taken_over_stays_with_what_it_needs() {
    let named = |name: &str, kind, labels: &[(&str, &str)]| Object {
        name: name.to_owned(),
        id: name.to_owned(),
        ..object(kind, labels)
    };
    let objects = vec![
        named(
            "taken",
            ObjectKind::Container,
            &[("owner", "dead"), ("project", "p")],
        ),
        named(
            "beside",
            ObjectKind::Container,
            &[("owner", "dead"), ("project", "p")],
        ),
        named(
            "other",
            ObjectKind::Container,
            &[("owner", "dead"), ("project", "q")],
        ),
        named("lone", ObjectKind::Container, &[("owner", "dead")]),
        named("network", ObjectKind::Network, &[("owner", "dead")]),
        named("volume", ObjectKind::Volume, &[("owner", "dead")]),
        named(
            "lease",
            ObjectKind::Volume,
            &[("owner", "dead"), ("kind", "lease")],
        ),
        named("strange", ObjectKind::Container, &[("owner", "gone")]),
        named("strange-volume", ObjectKind::Volume, &[("owner", "gone")]),
        named(
            "holding",
            ObjectKind::Volume,
            &[("owner", "taker"), ("kind", "lease"), ("holds", "nothing,taken")],
        ),
    ];
    let look = look(Instant::now(), objects);
    let left = |taker: Life, own_holds: &[String]| -> Vec<&str> {
        let dead = Life::Dead("d");
        let lives = BTreeMap::from([("dead", dead), ("gone", dead), ("taker", taker)]);
        let holds = Holds::new(&look, &lives, "me", own_holds);
        let stays = |object: &&Object| {
            let life = object
                .marks
                .owner
                .as_deref()
                .and_then(|owner| lives.get(owner).copied());
            let fate = fate(object, life, holds.life(object), at(0), KeptSandboxes::Leave);
            !matches!(fate, Fate::Remove(_))
        };
        look.objects
            .iter()
            .filter(stays)
            .map(|object| object.name.as_str())
            .collect()
    };
    let held = ["taken", "beside", "network", "volume", "lease"];
    let with_lease = [held.as_slice(), &["holding"]].concat();
    assert_eq!(left(Life::Alive("a"), &[]), with_lease);
    assert_eq!(left(Life::Unsure("u"), &[]), with_lease);
    assert_eq!(left(Life::Dead("d"), &[]), Vec::<&str>::new());
    // This process knows what it holds, whatever became of its lease.
    assert_eq!(left(Life::Dead("d"), &["taken".to_owned()]), held);
    let lives = BTreeMap::from([("taker", Life::Alive("a"))]);
    let holds = Holds::new(&look, &lives, "me", &[]);
    assert_eq!(holds.holder("taken").map(|(holder, _)| holder), Some("taker"));
    assert_eq!(holds.holder("lone"), None);
}

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::json;

use crate::error::{Error, ErrorKind, Operation};
use crate::provider::{OnExisting, ProviderFactory, create_provider, list_providers, register_provider};

use super::invalid;
use super::scripted::Scripted;

fn factory() -> ProviderFactory {
    Arc::new(|_| Ok(Scripted::new()))
}

/// A factory that counts its calls.
fn counting() -> (ProviderFactory, Arc<AtomicUsize>) {
    let count = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&count);
    let factory: ProviderFactory = Arc::new(move |_| {
        counted.fetch_add(1, Ordering::Relaxed);
        Ok(Scripted::new())
    });
    (factory, count)
}

#[test]
fn g01_a_name_is_not_empty() {
    for name in ["", "  "] {
        invalid(register_provider(name, factory(), OnExisting::Replace));
    }
}

#[test]
fn g01_a_taken_name_is_refused_unless_it_is_to_be_replaced() {
    let name = "g01-taken";
    let (first, first_made) = counting();
    let (second, second_made) = counting();
    register_provider(name, first, OnExisting::Refuse).unwrap();
    let error = register_provider(name, Arc::clone(&second), OnExisting::Refuse).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Conflict);
    assert!(error.to_string().contains(name));
    create_provider(&json!({ name: {} })).unwrap();
    register_provider(name, second, OnExisting::Replace).unwrap();
    create_provider(&json!({ name: {} })).unwrap();
    assert_eq!(
        (
            first_made.load(Ordering::Relaxed),
            second_made.load(Ordering::Relaxed)
        ),
        (1, 1)
    );
}

#[test]
fn g01_a_built_in_name_is_taken() {
    // It is not shadowed here: the registry is one for the process and other tests make the built-in one. The
    // integration test `g01_a_registered_provider_shadows_a_built_in_one` does it in a process of its own.
    let error = register_provider("docker", factory(), OnExisting::Refuse).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Conflict);
}

#[test]
fn g02_an_unknown_provider_is_refused_with_the_known_ones() {
    register_provider("g02-known", factory(), OnExisting::Refuse).unwrap();
    let text = invalid(create_provider(&json!({"g02-unknown": {}})));
    assert!(text.contains("`g02-unknown`"), "{text}");
    assert!(text.contains("docker") && text.contains("g02-known"), "{text}");
}

#[test]
fn g03_the_list_is_sorted_unique_and_has_every_source() {
    register_provider("g03-b", factory(), OnExisting::Refuse).unwrap();
    register_provider("g03-a", factory(), OnExisting::Refuse).unwrap();
    register_provider("g03-a", factory(), OnExisting::Replace).unwrap();
    let listed = list_providers();
    let mut sorted = listed.clone();
    sorted.sort();
    sorted.dedup();
    assert_eq!(listed, sorted);
    for name in ["docker", "g03-a", "g03-b"] {
        assert!(
            listed.iter().any(|listed| listed == name),
            "{name} is not in {listed:?}"
        );
    }
}

#[test]
fn g05_the_factory_gets_the_settings_and_its_error_comes_through() {
    let factory: ProviderFactory = Arc::new(|settings| {
        assert_eq!(settings.get("depth"), Some(&json!(3)));
        Err(Error::new(
            ErrorKind::Unavailable,
            Operation::Connect,
            "from the factory",
        ))
    });
    register_provider("g05-failing", factory, OnExisting::Refuse).unwrap();
    let error = create_provider(&json!({"g05-failing": {"depth": 3}})).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    assert!(error.to_string().contains("from the factory"));
}

#[test]
fn g05_null_settings_reach_the_factory_as_an_empty_map() {
    let factory: ProviderFactory = Arc::new(|settings| {
        assert!(settings.is_empty());
        Ok(Scripted::new())
    });
    register_provider("g05-null", factory, OnExisting::Refuse).unwrap();
    create_provider(&json!({"g05-null": null})).unwrap();
}

#[test]
fn g05_a_wrong_block_makes_no_provider() {
    let (factory, made) = counting();
    register_provider("g05-wrong", factory, OnExisting::Refuse).unwrap();
    for wrong in [
        json!({"g05-wrong": []}),
        json!({"g05-wrong": {}, "docker": {}}),
        json!("g05-wrong"),
    ] {
        invalid(create_provider(&wrong));
    }
    assert_eq!(made.load(Ordering::Relaxed), 0);
}

#[test]
fn d10_an_unknown_setting_of_a_built_in_provider_is_refused() {
    let text = invalid(create_provider(&json!({"docker": {"colour": "blue"}})));
    assert!(text.contains("colour"), "{text}");
}

//! Files that say who lives.

use std::os::unix::fs::PermissionsExt;

use super::*;

fn place_in(folder: &Path) -> Place {
    Place::open(&[folder.join("owners")]).unwrap()
}

/// Waits until a lock that was given up is free: a child that another test starts meanwhile has the file, too, until
/// it has become its program.
fn until_dead(place: &Place, owner: &str) {
    let deadline = std::time::Instant::now() + Duration::from_secs(60);
    while place.proof_of(owner) != Proof::Dead {
        assert!(std::time::Instant::now() < deadline, "{owner} lives on");
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn a_locked_file_is_a_living_owner_and_a_free_one_a_dead_one() {
    let folder = tempfile::tempdir().unwrap();
    let place = place_in(folder.path());
    let owner = format!("{}-{}", place.id, Uuid::new_v4().simple());
    assert_eq!(place.proof_of(&owner), Proof::Nothing);
    let file = lock_new(&place.folder, &owner).unwrap();
    assert_eq!(place.proof_of(&owner), Proof::Alive);
    drop(file);
    until_dead(&place, &owner);
    // Whoever looks disturbs nobody else who looks.
    let looking = File::open(place.folder.join(&owner)).unwrap();
    looking.try_lock_shared().unwrap();
    assert_eq!(place.proof_of(&owner), Proof::Dead);
}

#[test]
fn d35_a_dead_owner_is_remembered_for_what_comes_after_its_sweep() {
    let folder = tempfile::tempdir().unwrap();
    let place = place_in(folder.path());
    let [dead, alive] = [(); 2].map(|()| format!("{}-{}", place.id, Uuid::new_v4().simple()));
    let _file = lock_new(&place.folder, &alive).unwrap();
    drop(lock_new(&place.folder, &dead).unwrap());
    until_dead(&place, &dead);
    let owners = || [dead.as_str(), alive.as_str()].into_iter();
    let now = SystemTime::now();
    place.forget(owners(), now);
    assert_eq!(place.proof_of(&dead), Proof::Dead);
    place.forget([].into_iter(), now + REMEMBERED / 2);
    assert_eq!(place.proof_of(&dead), Proof::Dead);
    // Also when nothing of it was seen any more.
    place.forget([].into_iter(), now + REMEMBERED * 2);
    assert_eq!(place.proof_of(&dead), Proof::Nothing);
    assert_eq!(place.proof_of(&alive), Proof::Alive);
}

#[test]
fn another_folder_proves_nothing() {
    let folders = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let [here, there] = folders.each_ref().map(|folder| place_in(folder.path()));
    assert_ne!(here.id, there.id);
    assert_eq!(
        here.id,
        place_in(folders[0].path()).id,
        "the id of a folder stays"
    );
    let owner = format!("{}-{}", there.id, Uuid::new_v4().simple());
    let _file = lock_new(&there.folder, &owner).unwrap();
    fs::write(here.folder.join(&owner), "").unwrap();
    assert_eq!(here.proof_of(&owner), Proof::Nothing);
    assert_eq!(there.proof_of(&owner), Proof::Alive);
}

#[test]
fn a_label_is_no_path() {
    let folder = tempfile::tempdir().unwrap();
    let place = place_in(folder.path());
    fs::write(folder.path().join("outside"), "").unwrap();
    for owner in [
        format!("{}-../../outside", place.id),
        format!("{}-", place.id),
        "../outside".to_owned(),
        String::new(),
    ] {
        assert_eq!(place.proof_of(&owner), Proof::Nothing, "{owner}");
    }
}

#[test]
fn a_folder_that_others_can_write_is_not_used() {
    let folder = tempfile::tempdir().unwrap();
    let open = folder.path().join("open");
    fs::create_dir(&open).unwrap();
    fs::set_permissions(&open, fs::Permissions::from_mode(0o777)).unwrap();
    let link = folder.path().join("link");
    std::os::unix::fs::symlink(folder.path(), &link).unwrap();
    assert!(Place::open(&[open.clone(), link.clone()]).is_err());
    let place = Place::open(&[open, link, folder.path().join("owners")]).unwrap();
    assert_eq!(place.folder, folder.path().join("owners"));
}

#[test]
fn only_the_living_are_read() {
    let folder = tempfile::tempdir().unwrap();
    let place = place_in(folder.path());
    let owner = |letter: &str| format!("{}-{}", place.id, letter.repeat(32));
    let [alive, dead, silent] = ["a", "b", "c"].map(owner);
    let file = lock_new(&place.folder, &alive).unwrap();
    file.locked.write_all_at(b"here", 0).unwrap();
    fs::write(place.folder.join(&dead), "gone").unwrap();
    let _silent = lock_new(&place.folder, &silent).unwrap();
    assert_eq!(place.notices(), [(alive, "here".to_owned())]);
}

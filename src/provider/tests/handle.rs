use crate::error::{ErrorKind, Operation};
use crate::provider::SandboxHandle;
use crate::spec::{Ports, SandboxId};

struct Secret(&'static str);

fn handle() -> SandboxHandle {
    SandboxHandle::new(SandboxId::new("box-1").unwrap(), "docker")
        .with_ports(Ports::new([80]).unwrap())
        .with_raw(Secret("hunter2"))
}

#[test]
fn a_handle_gives_its_provider_its_private_part() {
    let handle = handle();
    assert_eq!(handle.sandbox_id().as_str(), "box-1");
    assert_eq!(handle.provider_name(), "docker");
    assert_eq!(handle.ports().as_slice(), [80]);
    assert_eq!(
        handle.raw_for::<Secret>("docker", Operation::Exec).unwrap().0,
        "hunter2"
    );
    assert_eq!(handle.clone().raw::<Secret>().unwrap().0, "hunter2");
    assert!(handle.raw::<String>().is_none());
}

#[test]
fn a_handle_of_another_provider_is_an_error_that_names_both() {
    for error in [
        handle().check_provider("local", Operation::Close).unwrap_err(),
        handle()
            .raw_for::<Secret>("local", Operation::Close)
            .err()
            .unwrap(),
    ] {
        assert_eq!(error.kind(), ErrorKind::ForeignHandle);
        assert_eq!(error.operation(), Operation::Close);
        assert_eq!(error.sandbox_id().unwrap().as_str(), "box-1");
        let text = error.to_string();
        assert!(text.contains("`docker`") && text.contains("`local`"), "{text}");
    }
}

#[test]
fn a_handle_without_the_private_part_is_an_error_and_no_panic() {
    let bare = SandboxHandle::new(SandboxId::new("box-1").unwrap(), "docker");
    bare.check_provider("docker", Operation::Exec).unwrap();
    let error = bare.raw_for::<Secret>("docker", Operation::Exec).err().unwrap();
    assert_eq!(error.kind(), ErrorKind::ForeignHandle);
    let other = bare.with_raw(1u8);
    assert_eq!(
        other
            .raw_for::<Secret>("docker", Operation::Exec)
            .err()
            .unwrap()
            .kind(),
        ErrorKind::ForeignHandle
    );
}

#[test]
fn a_handles_debug_text_holds_no_private_part() {
    let shown = format!("{:?}", handle());
    assert!(shown.contains("box-1") && shown.contains("docker"), "{shown}");
    assert!(!shown.contains("hunter2"), "{shown}");
}

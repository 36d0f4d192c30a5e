//! Locks of this process that belong to a container.

/// Some of a kind, of which each container has one by its id. Containers may share one, which only makes one of them wait.
pub(super) struct PerContainer<T, const COUNT: usize>(pub(super) [T; COUNT]);

impl<T, const COUNT: usize> PerContainer<T, COUNT> {
    /// That of this container.
    pub(super) fn of(&self, container_id: &str) -> &T {
        let place = container_id.bytes().fold(0_usize, |sum, byte| {
            sum.wrapping_mul(31).wrapping_add(byte.into())
        });
        &self.0[place % COUNT]
    }
}

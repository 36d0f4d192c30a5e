//! Numbers and byte strings in a payload. Knows no message.

use std::fmt;

/// A frame or message that nobody who keeps to the protocol sends. Its connection is closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Malformed(pub &'static str);

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

impl std::error::Error for Malformed {}

/// Takes values off the front of a payload. What is left at the end is ignored, so that later versions can add fields.
pub(super) struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    pub(super) fn new(payload: &'a [u8]) -> Self {
        Self(payload)
    }

    fn take(&mut self, count: usize) -> Result<&'a [u8], Malformed> {
        let (taken, rest) = self
            .0
            .split_at_checked(count)
            .ok_or(Malformed("a message is too short"))?;
        self.0 = rest;
        Ok(taken)
    }

    pub(super) fn array<const N: usize>(&mut self) -> Result<[u8; N], Malformed> {
        let mut array = [0; N];
        array.copy_from_slice(self.take(N)?);
        Ok(array)
    }

    pub(super) fn u8(&mut self) -> Result<u8, Malformed> {
        Ok(u8::from_le_bytes(self.array()?))
    }

    pub(super) fn u16(&mut self) -> Result<u16, Malformed> {
        Ok(u16::from_le_bytes(self.array()?))
    }

    pub(super) fn u32(&mut self) -> Result<u32, Malformed> {
        Ok(u32::from_le_bytes(self.array()?))
    }

    pub(super) fn u64(&mut self) -> Result<u64, Malformed> {
        Ok(u64::from_le_bytes(self.array()?))
    }

    pub(super) fn i32(&mut self) -> Result<i32, Malformed> {
        Ok(i32::from_le_bytes(self.array()?))
    }

    pub(super) fn i64(&mut self) -> Result<i64, Malformed> {
        Ok(i64::from_le_bytes(self.array()?))
    }

    pub(super) fn bytes(&mut self) -> Result<Vec<u8>, Malformed> {
        let count = self.u32()? as usize;
        Ok(self.take(count)?.to_vec())
    }

    /// A list. Each element takes at least `smallest` bytes, so that a wrong count allocates nothing.
    pub(super) fn list<T>(
        &mut self,
        smallest: usize,
        mut element: impl FnMut(&mut Self) -> Result<T, Malformed>,
    ) -> Result<Vec<T>, Malformed> {
        let count = self.u32()? as usize;
        if count > self.0.len() / smallest {
            return Err(Malformed("a list is longer than its message"));
        }
        (0..count).map(|_| element(self)).collect()
    }

    /// Text is bytes on the wire; what is no UTF-8 is shown with replacement characters.
    pub(super) fn text(&mut self) -> Result<String, Malformed> {
        Ok(String::from_utf8_lossy(&self.bytes()?).into_owned())
    }
}

/// Appends values to a payload.
#[derive(Default)]
pub(super) struct Writer(pub(super) Vec<u8>);

impl Writer {
    pub(super) fn raw(mut self, bytes: &[u8]) -> Self {
        self.0.extend_from_slice(bytes);
        self
    }

    pub(super) fn u8(self, value: u8) -> Self {
        self.raw(&value.to_le_bytes())
    }

    pub(super) fn u16(self, value: u16) -> Self {
        self.raw(&value.to_le_bytes())
    }

    pub(super) fn u32(self, value: u32) -> Self {
        self.raw(&value.to_le_bytes())
    }

    pub(super) fn u64(self, value: u64) -> Self {
        self.raw(&value.to_le_bytes())
    }

    pub(super) fn i32(self, value: i32) -> Self {
        self.raw(&value.to_le_bytes())
    }

    pub(super) fn i64(self, value: i64) -> Self {
        self.raw(&value.to_le_bytes())
    }

    pub(super) fn bytes(self, bytes: &[u8]) -> Self {
        // Longer messages than MAX_MESSAGE_BYTES are refused before they are sent, so no count is ever cut.
        let count = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
        self.u32(count).raw(bytes)
    }

    pub(super) fn list<T>(self, items: &[T], mut element: impl FnMut(Self, &T) -> Self) -> Self {
        let count = u32::try_from(items.len()).unwrap_or(u32::MAX);
        let mut writer = self.u32(count);
        for item in items {
            writer = element(writer, item);
        }
        writer
    }
}

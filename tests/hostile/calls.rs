//! Calls with odd values.

//! Bugs that tests plant to see that the checks find them.
//!
//! Outside of tests [`planted`] is the constant `false`.

/// One wrong step of the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(not(test), allow(dead_code))]
pub(crate) enum Bug {
    /// Page mapping leaves the old copy of a rewritten page valid.
    OldCopyStaysValid,
    /// Reclamation copies a page and does not map the copy.
    MovedPageIsNotMapped,
    /// A log out of order becomes the data block as if it were in order.
    SwitchOutOfOrder,
    /// A full merge takes the data block's copy of what is newer in the log.
    MergeTakesOldCopy,
    /// A merged log block is neither used nor free.
    BlockIsLost,
    /// FAST completes a sequential log over pages that are newer in the shared log.
    SequentialLogWins,
    /// A gap before an in-order write is not copied.
    GapIsNotCopied,
    /// DFTL evicts a map page and still finds it cached.
    EvictedStaysCached,
    /// The buffer forgets the oldest line of a batch.
    LineIsForgotten,
    /// Reclamation begins before it was decided on.
    ReclaimsTooEarly,
    /// Page mapping now and then reclaims a superblock without invalid pages.
    FullIsReclaimed,
    /// A trimmed page stays mapped.
    TrimIsForgotten,
    /// A free superblock is still a data block.
    BlockIsFreeAndData,
    /// Static wear levelling moves content and does not map it.
    LevelledIsNotMapped,
    /// Destaging gets more time than passes.
    ArrayRunsAhead,
}

#[cfg(test)]
thread_local! {
    static PLANTED: std::cell::Cell<Option<Bug>> = const { std::cell::Cell::new(None) };
}

/// True where a test has planted `bug`.
#[inline(always)]
pub(crate) fn planted(bug: Bug) -> bool {
    #[cfg(test)]
    let found = PLANTED.get() == Some(bug);
    #[cfg(not(test))]
    let found = {
        let _ = bug;
        false
    };
    found
}

/// Plants a bug, or digs it out.
#[cfg(test)]
pub(crate) fn plant(bug: Option<Bug>) {
    PLANTED.set(bug);
}

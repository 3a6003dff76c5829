//! What a container may do: the capabilities that are kept, and no way to gain others.

use std::io;

use rustix::thread::{
    CapabilitySet, CapabilitySets, capabilities, clear_ambient_capability_set, remove_capability_from_bounding_set,
    set_capabilities, set_no_new_privs,
};

/// Limits what this process can ever have. To be called while it still has its privileges.
pub(super) fn limit(kept: CapabilitySet) -> io::Result<()> {
    // An ordinary user outside of namespaces has nothing to give up.
    if !capabilities(None)?.permitted.contains(CapabilitySet::SETPCAP) {
        return Ok(());
    }
    for bit in 0..u64::BITS {
        let capability = CapabilitySet::from_bits_retain(1 << bit);
        if !kept.contains(capability) {
            match remove_capability_from_bounding_set(capability) {
                // The numbers end where this kernel's capabilities do.
                Ok(()) | Err(rustix::io::Errno::INVAL) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
    Ok(())
}

/// Gives up what is not kept. To be called as the user that the process runs as.
pub(super) fn drop_others(kept: CapabilitySet) -> io::Result<()> {
    clear_ambient_capability_set()?;
    let CapabilitySets { effective, permitted, inheritable: _ } = capabilities(None)?;
    let sets = CapabilitySets {
        effective: effective & kept,
        permitted: permitted & kept,
        inheritable: CapabilitySet::empty(),
    };
    set_capabilities(None, sets)?;
    set_no_new_privs(true)?;
    Ok(())
}

//! What a container may do: the capabilities that containers usually have, and no way to gain others.

use std::io;

use rustix::thread::{
    CapabilitySet, CapabilitySets, capabilities, clear_ambient_capability_set, remove_capability_from_bounding_set,
    set_capabilities, set_no_new_privs,
};

const KEPT: CapabilitySet = CapabilitySet::CHOWN
    .union(CapabilitySet::DAC_OVERRIDE)
    .union(CapabilitySet::FOWNER)
    .union(CapabilitySet::SETUID)
    .union(CapabilitySet::SETGID)
    .union(CapabilitySet::NET_BIND_SERVICE)
    .union(CapabilitySet::KILL);

/// Limits what this process can ever have. To be called while it still has its privileges.
pub(super) fn limit() -> io::Result<()> {
    // An ordinary user outside of namespaces has nothing to give up.
    if !capabilities(None)?.permitted.contains(CapabilitySet::SETPCAP) {
        return Ok(());
    }
    for bit in 0..u64::BITS {
        let capability = CapabilitySet::from_bits_retain(1 << bit);
        if !KEPT.contains(capability) {
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
pub(super) fn drop_others() -> io::Result<()> {
    clear_ambient_capability_set()?;
    let CapabilitySets { effective, permitted, inheritable: _ } = capabilities(None)?;
    let sets = CapabilitySets {
        effective: effective & KEPT,
        permitted: permitted & KEPT,
        inheritable: CapabilitySet::empty(),
    };
    set_capabilities(None, sets)?;
    set_no_new_privs(true)?;
    Ok(())
}

//! What a child process took: for the benches that time whole programs.

/// Waits for a child; its exit status and its peak memory in KiB, as the kernel counts it.
#[expect(unsafe_code, reason = "std tells nothing of a child's memory")]
pub fn wait(child: &std::process::Child) -> (i32, i64) {
    let mut status = 0;
    // SAFETY: both pointers are to values of ours that live through the call; the pid is that of a child of ours.
    let usage = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        let pid = libc::pid_t::try_from(child.id()).expect("a pid");
        assert_eq!(libc::wait4(pid, &raw mut status, 0, &raw mut usage), pid);
        usage
    };
    (status, usage.ru_maxrss)
}

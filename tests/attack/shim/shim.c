/* A library to preload: makes file calls of a process fail, and writes down what it does.

   SHIM_CONTROL names a file of sizeof(struct control) bytes that whoever attacks has mapped too: from
   the `skip`th call of the kind on, on a file whose path has `path` in it, `times` calls fail with
   `error`, or write or read only half where that is SHORT. While it is not armed nothing is counted.

   SHIM_TRACE names a file that gets an event for each write to a file whose path has SHIM_TRACED in
   it, for each sync of one, and for what is sent to sockets: see tests/attack/shim/__init__.py. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#define SHORT (-1)
#define PATH_BYTES 256
#define PIECES_MAX 1024

struct control {
    int32_t armed, error, skip, times, hits;
    char kind[32];
    char path[PATH_BYTES];
};

struct event {
    uint32_t kind, descriptor;
    uint64_t position, size;
};
enum { WRITTEN = 1, WRITTEN_DURABLY, SYNC_BEGUN, SYNCED, SENT };

static struct control *control;
static int trace = -1;
static const char *traced = "";
static pthread_mutex_t turn = PTHREAD_MUTEX_INITIALIZER;

#define REAL(name, type, ...) \
    static type (*real)(__VA_ARGS__); \
    if (!real) *(void **)&real = dlsym(RTLD_NEXT, #name)

__attribute__((constructor)) static void begin(void) {
    const char *path = getenv("SHIM_CONTROL");
    if (path) {
        int descriptor = syscall(SYS_openat, AT_FDCWD, path, O_RDWR | O_CLOEXEC);
        if (descriptor >= 0) {
            void *shared = (void *)syscall(
                SYS_mmap, NULL, sizeof(struct control), PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
            if (shared != MAP_FAILED) control = shared;
            syscall(SYS_close, descriptor);
        }
    }
    path = getenv("SHIM_TRACE");
    if (path) {
        trace = syscall(SYS_openat, AT_FDCWD, path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
        if (getenv("SHIM_TRACED")) traced = getenv("SHIM_TRACED");
    }
}

/* 0: go on; an error number: fail with it; SHORT: do half of it. */
static int fault(const char *kind, const char *path) {
    if (!control || !control->armed || strcmp(control->kind, kind) || !strstr(path, control->path))
        return 0;
    int result = 0;
    pthread_mutex_lock(&turn);
    if (control->skip > 0) control->skip--;
    else if (control->times > 0) {
        control->times--;
        control->hits++;
        result = control->error;
    }
    pthread_mutex_unlock(&turn);
    return result;
}

static const char *path_of(int descriptor, char *path) {
    char link[64] = "/proc/self/fd/";
    char digits[16];
    int at = sizeof digits, rest = descriptor;
    digits[--at] = 0;
    do digits[--at] = '0' + rest % 10; while (rest /= 10);
    strcat(link, digits + at);
    long size = syscall(SYS_readlinkat, AT_FDCWD, link, path, 4095);
    path[size > 0 ? size : 0] = 0;
    return path;
}

static int fault_of(const char *kind, int descriptor) {
    if (!control || !control->armed || strcmp(control->kind, kind)) return 0;
    char path[4096];
    return fault(kind, path_of(descriptor, path));
}

static int is_traced(int descriptor) {
    if (trace < 0) return 0;
    char path[4096];
    return strstr(path_of(descriptor, path), traced) != NULL;
}

static void note(int kind, int descriptor, uint64_t position, uint64_t size,
                 const struct iovec *pieces, int count) {
    struct event event = {kind, descriptor, position, size};
    pthread_mutex_lock(&turn);
    syscall(SYS_write, trace, &event, sizeof event);
    for (int i = 0; i < count && size; i++) {
        size_t part = pieces[i].iov_len < size ? pieces[i].iov_len : size;
        syscall(SYS_write, trace, pieces[i].iov_base, part);
        size -= part;
    }
    pthread_mutex_unlock(&turn);
}

static int half_of(const struct iovec *pieces, int count, struct iovec *halved) {
    size_t total = 0;
    int used = 0;
    for (int i = 0; i < count; i++) total += pieces[i].iov_len;
    size_t left = total > 1 ? total / 2 : total;
    for (; used < count && used < PIECES_MAX && left; used++) {
        halved[used] = pieces[used];
        if (halved[used].iov_len > left) halved[used].iov_len = left;
        left -= halved[used].iov_len;
    }
    return used;
}

#define FAIL_WITH(number) do { errno = (number); return -1; } while (0)

/* ------------------------------------------------------------------------------------ transfers */

static ssize_t write_pieces(int descriptor, const struct iovec *pieces, int count, off_t position,
                            int flags) {
    struct iovec halved[PIECES_MAX];
    int wrong = fault_of("write", descriptor);
    if (!wrong && flags) wrong = fault_of("sync", descriptor);
    if (wrong > 0) FAIL_WITH(wrong);
    if (wrong == SHORT) {
        count = half_of(pieces, count, halved);
        pieces = halved;
    }
    ssize_t written = syscall(SYS_pwritev2, descriptor, pieces, count, position, 0, flags);
    if (written > 0 && is_traced(descriptor))
        note(flags ? WRITTEN_DURABLY : WRITTEN, descriptor, position, written, pieces, count);
    return written;
}

static ssize_t read_pieces(int descriptor, const struct iovec *pieces, int count, off_t position,
                           int flags) {
    struct iovec halved[PIECES_MAX];
    int wrong = fault_of("read", descriptor);
    if (wrong > 0) FAIL_WITH(wrong);
    if (wrong == SHORT) {
        count = half_of(pieces, count, halved);
        pieces = halved;
    }
    return syscall(SYS_preadv2, descriptor, pieces, count, position, 0, flags);
}

#define WRITES(name) \
    ssize_t name(int descriptor, const void *data, size_t size, off_t position) { \
        struct iovec piece = {(void *)data, size}; \
        return write_pieces(descriptor, &piece, 1, position, 0); \
    }
WRITES(pwrite)
WRITES(pwrite64)

#define WRITES_PIECES(name) \
    ssize_t name(int descriptor, const struct iovec *pieces, int count, off_t position) { \
        return write_pieces(descriptor, pieces, count, position, 0); \
    }
WRITES_PIECES(pwritev)
WRITES_PIECES(pwritev64)

#define WRITES_FLAGGED(name) \
    ssize_t name(int descriptor, const struct iovec *pieces, int count, off_t position, int flags) { \
        return write_pieces(descriptor, pieces, count, position, flags); \
    }
WRITES_FLAGGED(pwritev2)
WRITES_FLAGGED(pwritev64v2)

#define READS(name) \
    ssize_t name(int descriptor, void *data, size_t size, off_t position) { \
        struct iovec piece = {data, size}; \
        return read_pieces(descriptor, &piece, 1, position, 0); \
    }
READS(pread)
READS(pread64)

#define READS_PIECES(name) \
    ssize_t name(int descriptor, const struct iovec *pieces, int count, off_t position) { \
        return read_pieces(descriptor, pieces, count, position, 0); \
    }
READS_PIECES(preadv)
READS_PIECES(preadv64)

#define READS_FLAGGED(name) \
    ssize_t name(int descriptor, const struct iovec *pieces, int count, off_t position, int flags) { \
        return read_pieces(descriptor, pieces, count, position, flags); \
    }
READS_FLAGGED(preadv2)
READS_FLAGGED(preadv64v2)

ssize_t read(int descriptor, void *data, size_t size) {
    int wrong = fault_of("read", descriptor);
    if (wrong > 0) FAIL_WITH(wrong);
    return syscall(SYS_read, descriptor, data, wrong == SHORT && size > 1 ? size / 2 : size);
}

static int is_socket(int descriptor) {
    struct stat state;
    return !syscall(SYS_fstat, descriptor, &state) && S_ISSOCK(state.st_mode);
}

ssize_t write(int descriptor, const void *data, size_t size) {
    int wrong = fault_of("write", descriptor);
    if (wrong > 0) FAIL_WITH(wrong);
    if (trace >= 0 && is_socket(descriptor)) {
        struct iovec piece = {(void *)data, size};
        note(SENT, descriptor, 0, size, &piece, 1);
    }
    return syscall(SYS_write, descriptor, data, wrong == SHORT && size > 1 ? size / 2 : size);
}

static uint64_t bytes_in(const struct iovec *pieces, int count) {
    uint64_t total = 0;
    for (int i = 0; i < count; i++) total += pieces[i].iov_len;
    return total;
}

ssize_t writev(int descriptor, const struct iovec *pieces, int count) {
    if (trace >= 0 && is_socket(descriptor))
        note(SENT, descriptor, 0, bytes_in(pieces, count), pieces, count);
    return syscall(SYS_writev, descriptor, pieces, count);
}

ssize_t send(int descriptor, const void *data, size_t size, int flags) {
    if (trace >= 0) {
        struct iovec piece = {(void *)data, size};
        note(SENT, descriptor, 0, size, &piece, 1);
    }
    return syscall(SYS_sendto, descriptor, data, size, flags, NULL, 0);
}

ssize_t sendmsg(int descriptor, const struct msghdr *message, int flags) {
    if (trace >= 0)
        note(SENT, descriptor, 0, bytes_in(message->msg_iov, message->msg_iovlen), message->msg_iov,
             message->msg_iovlen);
    return syscall(SYS_sendmsg, descriptor, message, flags);
}

#define SENDS_FILE(name) \
    ssize_t name(int target, int source, off_t *position, size_t size) { \
        int wrong = fault_of("sendfile", source); \
        if (wrong > 0) FAIL_WITH(wrong); \
        return syscall(SYS_sendfile, target, source, position, wrong == SHORT && size > 1 ? size / 2 : size); \
    }
SENDS_FILE(sendfile)
SENDS_FILE(sendfile64)

/* ---------------------------------------------------------------------------------------- syncs */

static int sync_with(int number, int descriptor) {
    int wrong = fault_of("sync", descriptor);
    if (wrong > 0) FAIL_WITH(wrong);
    int noted = is_traced(descriptor);
    if (noted) note(SYNC_BEGUN, descriptor, 0, 0, NULL, 0);
    int result = syscall(number, descriptor);
    if (noted && !result) note(SYNCED, descriptor, 0, 0, NULL, 0);
    return result;
}
int fsync(int descriptor) { return sync_with(SYS_fsync, descriptor); }
int fdatasync(int descriptor) { return sync_with(SYS_fdatasync, descriptor); }

int sync_file_range(int descriptor, off64_t position, off64_t size, unsigned flags) {
    int wrong = fault_of("sync_range", descriptor);
    if (wrong > 0) FAIL_WITH(wrong);
    return syscall(SYS_sync_file_range, descriptor, position, size, flags);
}

/* -------------------------------------------------------------------------------- sizes, memory */

#define TRUNCATES(name) \
    int name(int descriptor, off_t size) { \
        int wrong = fault_of("truncate", descriptor); \
        if (wrong > 0) FAIL_WITH(wrong); \
        return syscall(SYS_ftruncate, descriptor, size); \
    }
TRUNCATES(ftruncate)
TRUNCATES(ftruncate64)

#define ALLOCATES(name) \
    int name(int descriptor, int mode, off_t position, off_t size) { \
        int wrong = fault_of("allocate", descriptor); \
        if (wrong > 0) FAIL_WITH(wrong); \
        return syscall(SYS_fallocate, descriptor, mode, position, size); \
    }
ALLOCATES(fallocate)
ALLOCATES(fallocate64)

#define RESERVES(name) \
    int name(int descriptor, off_t position, off_t size) { \
        int wrong = fault_of("allocate", descriptor); \
        if (wrong > 0) return wrong; \
        REAL(name, int, int, off_t, off_t); \
        return real(descriptor, position, size); \
    }
RESERVES(posix_fallocate)
RESERVES(posix_fallocate64)

#define MAPS(name) \
    void *name(void *where, size_t size, int protection, int flags, int descriptor, off_t position) { \
        int wrong = descriptor >= 0 ? fault_of("mmap", descriptor) : 0; \
        if (wrong > 0) { errno = wrong; return MAP_FAILED; } \
        return (void *)syscall(SYS_mmap, where, size, protection, flags, descriptor, position); \
    }
MAPS(mmap)
MAPS(mmap64)

/* ---------------------------------------------------------------------------------------- names */

static int open_at(int directory, const char *path, int flags, mode_t mode) {
    int wrong = fault("open", path);
    if (!wrong && (flags & O_CREAT)) wrong = fault("create", path);
    if (wrong > 0) FAIL_WITH(wrong);
    return syscall(SYS_openat, directory, path, flags, mode);
}

static mode_t mode_in(int flags, va_list arguments) {
    return flags & (O_CREAT | O_TMPFILE) ? va_arg(arguments, mode_t) : 0;
}

#define OPENS(name) \
    int name(const char *path, int flags, ...) { \
        va_list arguments; \
        va_start(arguments, flags); \
        mode_t mode = mode_in(flags, arguments); \
        va_end(arguments); \
        return open_at(AT_FDCWD, path, flags, mode); \
    }
OPENS(open)
OPENS(open64)

#define OPENS_AT(name) \
    int name(int directory, const char *path, int flags, ...) { \
        va_list arguments; \
        va_start(arguments, flags); \
        mode_t mode = mode_in(flags, arguments); \
        va_end(arguments); \
        return open_at(directory, path, flags, mode); \
    }
OPENS_AT(openat)
OPENS_AT(openat64)

int rename(const char *old, const char *new) {
    int wrong = fault("rename", new);
    if (wrong > 0) FAIL_WITH(wrong);
    return syscall(SYS_renameat2, AT_FDCWD, old, AT_FDCWD, new, 0);
}

int unlink(const char *path) {
    int wrong = fault("unlink", path);
    if (wrong > 0) FAIL_WITH(wrong);
    return syscall(SYS_unlinkat, AT_FDCWD, path, 0);
}

int mkdir(const char *path, mode_t mode) {
    int wrong = fault("mkdir", path);
    if (wrong > 0) FAIL_WITH(wrong);
    return syscall(SYS_mkdirat, AT_FDCWD, path, mode);
}

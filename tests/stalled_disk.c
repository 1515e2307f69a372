/* A disk that can be stopped: every sync waits while the file named by STALLED_DISK exists. For LD_PRELOAD. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <unistd.h>

static void wait_for_disk(void)
{
    const char *stalled = getenv("STALLED_DISK");
    while (stalled && access(stalled, F_OK) == 0)
        usleep(10000);
}

static int synced(const char *name, int descriptor)
{
    int (*sync)(int) = (int (*)(int))dlsym(RTLD_NEXT, name);
    wait_for_disk();
    return sync(descriptor);
}

int fsync(int descriptor) { return synced("fsync", descriptor); }
int fdatasync(int descriptor) { return synced("fdatasync", descriptor); }

/* The only file of gym-sandbox/static:test: one program without a shell, a libc or a /tmp beside it.
 * The first argument says what it does; docs/development.md lists the verbs. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern char **environ;

static void fail(const char *what) {
    fprintf(stderr, "static: %s: %s\n", what, strerror(errno));
    exit(1);
}

static void end(int signal_number) { _exit(128 + signal_number); }

static void sleep_seconds(double seconds) {
    struct timespec left = {(time_t)seconds, (long)((seconds - (double)(time_t)seconds) * 1e9)};
    while (nanosleep(&left, &left) != 0 && errno == EINTR) {
    }
}

static void sleep_for_ever(void) {
    for (;;) pause();
}

static void write_all(int fd, const char *data, size_t length) {
    while (length > 0) {
        ssize_t written = write(fd, data, length);
        if (written < 0) {
            if (errno == EINTR) continue;
            fail("write");
        }
        data += written;
        length -= (size_t)written;
    }
}

static void copy_stdin(void) {
    char buffer[65536];
    ssize_t length;
    while ((length = read(0, buffer, sizeof buffer)) != 0) {
        if (length < 0) {
            if (errno == EINTR) continue;
            fail("read");
        }
        write_all(1, buffer, (size_t)length);
    }
}

static void flood(long long bytes) {
    static char block[65536];
    memset(block, 'x', sizeof block);
    while (bytes > 0) {
        size_t length = bytes < (long long)sizeof block ? (size_t)bytes : sizeof block;
        write_all(1, block, length);
        bytes -= (long long)length;
    }
}

/* Touches each page: memory that is only asked for is not counted by anyone. */
static void use_memory(size_t bytes) {
    char *memory = malloc(bytes);
    if (memory == NULL) fail("malloc");
    for (size_t at = 0; at < bytes; at += 4096) memory[at] = 1;
    printf("%zu\n", bytes);
    fflush(stdout);
    sleep_for_ever();
}

/* Children that outlive their parent and hold its stdout. */
static void leave_children(long count, double seconds) {
    for (long made = 0; made < count; made++) {
        pid_t child = fork();
        if (child < 0) fail("fork");
        if (child == 0) {
            sleep_seconds(seconds);
            _exit(0);
        }
        printf("%ld\n", (long)child);
    }
}

static const char *argument(int argc, char **argv, int at, const char *otherwise) { return at < argc ? argv[at] : otherwise; }

int main(int argc, char **argv) {
    const char *verb = argument(argc, argv, 1, "sleep");
    /* As process 1 it would otherwise get neither: the kernel drops what process 1 has no handler for. */
    signal(SIGTERM, end);
    signal(SIGINT, end);

    if (strcmp(verb, "print") == 0) {
        puts(argument(argc, argv, 2, ""));
    } else if (strcmp(verb, "eprint") == 0) {
        fprintf(stderr, "%s\n", argument(argc, argv, 2, ""));
    } else if (strcmp(verb, "exit") == 0) {
        return atoi(argument(argc, argv, 2, "0"));
    } else if (strcmp(verb, "sleep") == 0) {
        if (argc > 2) sleep_seconds(atof(argv[2]));
        else sleep_for_ever();
    } else if (strcmp(verb, "hold") == 0) {
        signal(SIGTERM, SIG_IGN);
        signal(SIGINT, SIG_IGN);
        sleep_for_ever();
    } else if (strcmp(verb, "cat") == 0) {
        copy_stdin();
    } else if (strcmp(verb, "env") == 0) {
        for (char **entry = environ; *entry != NULL; entry++) puts(*entry);
    } else if (strcmp(verb, "args") == 0) {
        for (int at = 2; at < argc; at++) puts(argv[at]);
    } else if (strcmp(verb, "id") == 0) {
        printf("%ld:%ld\n", (long)getuid(), (long)getgid());
    } else if (strcmp(verb, "pwd") == 0) {
        char folder[4096];
        if (getcwd(folder, sizeof folder) == NULL) fail("getcwd");
        puts(folder);
    } else if (strcmp(verb, "flood") == 0) {
        flood(atoll(argument(argc, argv, 2, "0")));
    } else if (strcmp(verb, "memory") == 0) {
        use_memory((size_t)atoll(argument(argc, argv, 2, "0")));
    } else if (strcmp(verb, "fork") == 0) {
        leave_children(atol(argument(argc, argv, 2, "1")), atof(argument(argc, argv, 3, "60")));
    } else if (strcmp(verb, "spin") == 0) {
        for (volatile unsigned long turns = 0;; turns++) {
        }
    } else if (strcmp(verb, "crash") == 0) {
        abort();
    } else {
        fprintf(stderr, "static: there is no verb %s\n", verb);
        return 2;
    }
    return fflush(stdout) == 0 ? 0 : 1;
}

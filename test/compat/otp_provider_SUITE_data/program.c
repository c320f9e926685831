/* Prints what provides each provider in this process: a line `NAME: OBJECT`. */
#include "backends/lttng/find_provider.h"

#include <stdio.h>

int main(int argc, char **argv) {
    for (int i = 1; i < argc; i++) {
        char object[4096] = "";
        void *library;
        bool found = dt_lttng_find(argv[i], object, sizeof object, &library);

        printf("%s: %s%s\n", argv[i], found ? object : "nothing", library ? " (ours)" : "");
    }
    return 0;
}

/* Packets in, packets out. Build and run: cc -o test_mine test_mine.c && ./test_mine */
#undef NDEBUG
#include "mine.c"

#include <assert.h>
#include <stdio.h>

/* The packets that wait: each queue has packets of one length. */
static flowloom_queue queues[QUEUES];

static void fill(uint32_t queue, uint32_t packets, uint32_t length) {
    queues[queue] = (flowloom_queue){.bytes = (uint64_t)packets * length, .packets = packets, .first = packets ? length : 0};
}

static flowloom_view waiting(void) {
    flowloom_view view = {.queues = queues};
    for (int i = 0; i < QUEUES; i++) {
        view.packets += queues[i].packets;
        view.bytes += queues[i].bytes;
    }
    return view;
}

int main(void) {
    const flowloom_port port = {.limit_packets = 3, .limit_bytes = FLOWLOOM_UNLIMITED};
    const flowloom_value values[] = {{1500}};
    struct drr own = {0};
    flowloom_view view = waiting();
    uint32_t queue = QUEUES;
    assert(create(NULL, &own, &port, values) == FLOWLOOM_OK);

    /* Each priority has a queue; the last queue has all that follow. */
    const uint8_t prios[] = {0, 3, 7, 200};
    const uint32_t expected[] = {0, 3, 7, 7};
    for (int i = 0; i < 4; i++) {
        const flowloom_packet packet = {.prio = prios[i]};
        flowloom_place place = {0};
        assert(enqueue(&own, 0, &view, &packet, &place) == FLOWLOOM_OK);
        assert(place.queue == expected[i]);
    }

    /* In each round queue 0 sends 1500 bytes in packets of 1500, and queue 1 in packets of 500. */
    const uint32_t order[] = {0, 1, 1, 1, 0, 1, 1, 1, 0, 1, 1, 1};
    uint32_t left[] = {3, 9};
    for (int i = 0; i < 12; i++) {
        fill(0, left[0], 1500);
        fill(1, left[1], 500);
        view = waiting();
        assert(dequeue(&own, 0, &view, &queue) == FLOWLOOM_OK);
        assert(queue == order[i]);
        left[queue]--;
    }
    assert(*count(&own) == 6);

    /* A full port drops from its longest queue. */
    fill(0, 1, 1500);
    fill(1, 2, 500);
    view = waiting();
    assert(evict(&own, 0, &view, &queue) == FLOWLOOM_NONE);
    fill(1, 4, 500);
    view = waiting();
    assert(evict(&own, 0, &view, &queue) == FLOWLOOM_OK);
    assert(queue == 1);
    puts("ok");
    return 0;
}

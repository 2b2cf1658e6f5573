/* The queue discipline `mine`: so far it is deficit round robin (Shreedhar and Varghese, SIGCOMM 1995). Build:
 *
 *     cc -std=c11 -O2 -fPIC -shared -o mine.so mine.c
 *
 * Each priority has a queue, and queues send about `quantum` bytes in turn. A full port drops from its longest queue. */
#include "flowloom.h"

#define QUEUES 8

static const flowloom_parameter parameters[] = {
    {"quantum", "1500B", "64B", "1MB", "section 4: a full packet", "Bytes that a queue may send in its turn.", FLOWLOOM_SIZE, 0},
};

static const flowloom_counter counters[] = {
    {"turns", "turns", "Turns of queues with packets."},
};

/* The discipline of a port. */
struct drr {
    uint64_t limit_packets, limit_bytes, quantum;
    uint64_t turns;
    uint64_t deficit[QUEUES]; /* bytes that a queue may still send */
    uint32_t turn;            /* the queue whose turn it is */
    uint32_t begun;           /* not zero: it has got its quantum */
};

static int32_t create(const void *context, void *own, const flowloom_port *port, const flowloom_value *values) {
    struct drr *d = own;
    (void)context;
    d->limit_packets = port->limit_packets;
    d->limit_bytes = port->limit_bytes;
    d->quantum = values[0].integer;
    return FLOWLOOM_OK;
}

static int32_t enqueue(void *own, uint64_t now, const flowloom_view *view, const flowloom_packet *packet, flowloom_place *place) {
    (void)own, (void)now, (void)view;
    place->queue = packet->prio < QUEUES ? packet->prio : QUEUES - 1;
    return FLOWLOOM_OK;
}

static int32_t evict(void *own, uint64_t now, const flowloom_view *view, uint32_t *queue) {
    const struct drr *d = own;
    uint32_t longest = 0;
    (void)now;
    if (view->packets <= d->limit_packets && view->bytes <= d->limit_bytes)
        return FLOWLOOM_NONE;
    for (uint32_t i = 1; i < QUEUES; i++)
        if (view->queues[i].bytes > view->queues[longest].bytes)
            longest = i;
    *queue = longest;
    return FLOWLOOM_OK;
}

static void next_turn(struct drr *d) {
    d->turn = (d->turn + 1) % QUEUES;
    d->begun = 0;
}

static int32_t dequeue(void *own, uint64_t now, const flowloom_view *view, uint32_t *queue) {
    struct drr *d = own;
    (void)now;
    for (;;) {
        const flowloom_queue *first = &view->queues[d->turn];
        uint64_t *deficit = &d->deficit[d->turn];
        if (first->packets > 0 && !d->begun) {
            *deficit += d->quantum;
            d->begun = 1;
            d->turns++;
        }
        if (first->packets > 0 && first->first <= *deficit) {
            *deficit -= first->first;
            *queue = d->turn;
            /* An empty queue keeps no deficit. */
            if (first->packets == 1) {
                *deficit = 0;
                next_turn(d);
            }
            return FLOWLOOM_OK;
        }
        if (first->packets == 0)
            *deficit = 0;
        next_turn(d);
    }
}

static const uint64_t *count(const void *own) { return &((const struct drr *)own)->turns; }

static const flowloom_qdisc table = {
    .head =
        {
            FLOWLOOM_QDISC_HEAD,
            .name = "mine",
            .summary = "deficit round robin over the priorities of packets, to be changed",
            .source = "Shreedhar and Varghese, SIGCOMM 1995",
            .parameters = parameters,
            .parameter_count = sizeof parameters / sizeof *parameters,
            .counters = counters,
            .counter_count = sizeof counters / sizeof *counters,
            .own_size = sizeof(struct drr),
        },
    .queues = QUEUES,
    .create = create,
    .enqueue = enqueue,
    .evict = evict,
    .dequeue = dequeue,
    .count = count,
};

const flowloom_head *flowloom_plugin(void) { return &table.head; }

// A closed queueing network by hand: the event loop that a C++ programmer would write for it.
//
// Customers travel along routes of single-server FIFO stations; service times are a base times
// a keyed factor, as in sim/engine/draws.py. Events of one time come by (request, step), and a freed
// server is handed over before its customer moves on, so that the answer is the engines' own.
//
// Usage: closed_network STATIONS ROUTES VISITS CUSTOMERS REQUESTS SEED BASE_NS  < 256 cells of `draws.factor_cells`
// Prints: uses, end of the last request [ns], sum of completion times mod 2^64, seconds.

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <queue>
#include <vector>

static uint64_t splitmix64(uint64_t value) {
    value += 0x9E3779B97F4A7C15ull;
    value = (value ^ (value >> 30)) * 0xBF58476D1CE4E5B9ull;
    value = (value ^ (value >> 27)) * 0x94D049BB133111EBull;
    return value ^ (value >> 31);
}

struct Event {
    int64_t time_ns;
    uint64_t key;
    int32_t customer;
};

struct Later {
    bool operator()(const Event& a, const Event& b) const {
        return a.time_ns != b.time_ns ? a.time_ns > b.time_ns : a.key > b.key;
    }
};

struct Customer {
    uint64_t request;
    int visit;
};

struct Station {
    bool busy = false;
    std::deque<int32_t> waiting;
};

int main(int argc, char** argv) {
    if (argc != 8) return 2;
    const int stations_count = std::atoi(argv[1]), routes = std::atoi(argv[2]), visits = std::atoi(argv[3]);
    const int customers_count = std::atoi(argv[4]);
    const uint64_t requests = std::strtoull(argv[5], nullptr, 10);
    const uint64_t state = splitmix64(std::strtoull(argv[6], nullptr, 10));
    const int64_t base_ns = std::atoll(argv[7]);
    struct Cell {
        long long low, knot, rise, later_rise;
    } cells[256];
    for (auto& cell : cells)
        if (std::scanf("%lld %lld %lld %lld", &cell.low, &cell.knot, &cell.rise, &cell.later_rise) != 4) return 2;
    std::vector<int32_t> route(static_cast<size_t>(routes) * visits);
    for (size_t place = 0; place < route.size(); ++place)
        route[place] = static_cast<int32_t>(splitmix64(place) % stations_count);

    const auto start = std::chrono::steady_clock::now();
    std::vector<Station> stations(stations_count);
    std::vector<Customer> customers(customers_count);
    std::priority_queue<Event, std::vector<Event>, Later> calendar;
    uint64_t issued = 0, uses = 0, sum = 0;
    int64_t now_ns = 0;

    auto serve = [&](int32_t index) {
        const Customer& customer = customers[index];
        const uint64_t key = customer.request << 12 | static_cast<uint64_t>(customer.visit + 1);
        const uint64_t draw = splitmix64(state ^ key);
        const Cell& cell = cells[draw >> 56];
        const int64_t position = draw >> 36 & ((1 << 20) - 1);
        const int64_t early = std::min<int64_t>(position, cell.knot);
        const int64_t climbed = early * cell.rise + (position - early) * cell.later_rise;
        const int64_t factor = cell.low + ((climbed + (1 << 19)) >> 20);
        calendar.push({now_ns + ((base_ns * factor + (1 << 19)) >> 20), key, index});
    };
    auto station_of = [&](const Customer& customer) -> Station& {
        return stations[route[customer.request % routes * visits + customer.visit]];
    };
    auto arrive = [&](int32_t index) {
        Station& station = station_of(customers[index]);
        if (station.busy) {
            station.waiting.push_back(index);
        } else {
            station.busy = true;
            serve(index);
        }
    };

    for (int32_t index = 0; index < customers_count && issued < requests; ++index) {
        customers[index] = {issued++, 0};
        arrive(index);
    }
    while (!calendar.empty()) {
        const Event event = calendar.top();
        calendar.pop();
        now_ns = event.time_ns;
        ++uses;
        Customer& customer = customers[event.customer];
        Station& station = station_of(customer);
        if (station.waiting.empty()) {
            station.busy = false;
        } else {
            const int32_t next = station.waiting.front();
            station.waiting.pop_front();
            serve(next);
        }
        if (++customer.visit == visits) {
            sum += static_cast<uint64_t>(now_ns);
            if (issued == requests) continue;
            customer = {issued++, 0};
        }
        arrive(event.customer);
    }
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    std::printf("%llu %lld %llu %.9f\n", static_cast<unsigned long long>(uses), static_cast<long long>(now_ns),
                static_cast<unsigned long long>(sum), seconds);
    return 0;
}

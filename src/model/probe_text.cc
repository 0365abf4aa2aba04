// The text of the probe: prose, code, and two other scripts, written for it. Changing a character
// changes what the presets do to every model, so the text stays as it is.
#include "model/probe.h"

namespace shorthand {
namespace {

constexpr std::string_view kText =
    R"text(The ferry left the harbour a little after six, when the fog was still lying on the water and the gulls had not yet decided whether the day was worth getting up for. On the upper deck a woman in a green coat counted her suitcases for the third time. She had packed four of them in a hurry, and now there were only three.

"Perhaps you left it at the hotel," said the man beside her, without looking up from his newspaper. He was the kind of person who always knew where his own luggage was, and who thought that this was a matter of character.

"I never leave things," she answered. "Things leave me."

He folded the paper then, because it was an interesting thing to say at six in the morning. The engine changed its note; somewhere below a bell rang twice, and the long grey line of the breakwater began to slide past the rail. By the time they reached the open sea he had learned that she repaired clocks, that the fourth suitcase held nothing but springs, and that she was on her way to a town whose church had not struck the hour since the war of 1914. It was 42 kilometres from the coast, and the last train went at 17:35.

## How to read a table of distances

1. Find the row of the town you start from.
2. Follow it to the column of the town you want to reach.
3. The number is in kilometres; divide it by 1.609 for miles.

| from | to | km | hours |
|------|----|----|-------|
| Aldon | Bree | 118 | 1.5 |
| Bree | Carrow | 64.5 | 0.9 |
| Carrow | Aldon | 151 | 2.25 |

```python
def shortest(graph, start, goal):
    """Returns the length of the shortest way, or None if there is none."""
    seen, queue = {start: 0}, [(0, start)]
    while queue:
        distance, town = heapq.heappop(queue)
        if town == goal:
            return distance
        for other, step in graph[town].items():
            if distance + step < seen.get(other, float("inf")):
                seen[other] = distance + step
                heapq.heappush(queue, (seen[other], other))
    return None
```

El reloj de la torre se paró una noche de invierno, y nadie en el pueblo quiso subir a mirar por qué. Unos decían que el viento había roto la aguja grande; otros, que el relojero se había llevado una pieza para que lo llamaran de nuevo. Cuando por fin llegó la mujer del abrigo verde, los niños la siguieron por la plaza como si fuera un circo.

```cpp
template <typename T>
struct Span {
  const T* data;
  size_t size;
  const T& operator[](size_t i) const { return data[i]; }
};
static int count_if(Span<int> x, bool (*f)(int)) {
  int n = 0;
  for (size_t i = 0; i < x.size; ++i) n += f(x[i]) ? 1 : 0;
  return n;
}
```

{"town": "Carrow", "population": 3481, "bells": [{"weight_kg": 910, "year": 1688}, {"weight_kg": 415.5, "year": 1912}], "open": false}

钟楼里很冷。她把箱子放在木板上,打开第一个,里面是几百根大小不同的弹簧。孩子们从楼梯口往上看,谁也不敢说话。过了一个小时,她笑了笑,轻轻推了一下钟摆,于是整个小镇都听见了第一声钟响。

Question: A clock loses four minutes a day. It is set right at noon on Monday. What does it show at noon on Thursday? Answer: After three days it has lost 3 x 4 = 12 minutes, so it shows 11:48. Why is it slow rather than fast? Because the spring is weak, each swing takes a little longer than it should, and small errors, always in the same direction, add up. In theory one could write the rate as r = 1 - 4/1440, which is about 0.99722; in practice one turns the nut under the bob by a quarter and waits until the next day.

That evening the woman wrote a short letter. Dear Mr Hale, the fourth suitcase has been found: it was on the pier all the time, behind the crates, and a boy sold it to me for two coins. The church is striking again. People here say that it strikes too loudly, and that they had got used to the quiet. I shall stay until Sunday, then take the boat back. If you are on it, bring your newspaper; I would like to know how the world went on in the meantime. Yours, E. Marsh.
)text";

}  // namespace

std::string_view ProbeText() { return kText; }

}  // namespace shorthand

"""Map-reduce: the most frequent words of many documents.

Mappers count words and split their counts into as many parts as there are reducers; reducer r gets
part r of every mapper. A task with several results is what makes this shuffle three lines.
"""

import random
import zlib
from collections import Counter

import oxiray as ray

DOCUMENTS, WORDS, REDUCERS = 12, 20_000, 3
VOCABULARY = """the of and to a in is it you that he was for on are with as his they be at one have
this from or had by hot word but what some we can out other were all there when up use your how said
an each she which do their time if will way about many then them write would like so these her long
make thing see him two has look more day could go come did number sound no most people my over know
water than call first who may down side been now find""".split()


@ray.remote
def write(document):
    """A document of nonsense, but with the word frequencies of a language: Zipf's law."""
    weights = [1 / rank for rank in range(1, len(VOCABULARY) + 1)]
    return " ".join(random.Random(document).choices(VOCABULARY, weights, k=WORDS))


@ray.remote(num_returns=REDUCERS)
def count_words(text):
    parts = [Counter() for _ in range(REDUCERS)]
    for word, count in Counter(text.split()).items():
        # Not hash(), which differs between processes.
        parts[zlib.crc32(word.encode()) % REDUCERS][word] = count
    return parts


@ray.remote
def add_up(*parts):
    return sum(parts, Counter())


def main():
    ray.init(logging_level="warning")
    texts = [write.remote(document) for document in range(DOCUMENTS)]
    mapped = [count_words.remote(text) for text in texts]
    # zip(*) turns "parts of each mapper" into "parts for each reducer".
    reduced = [add_up.remote(*parts) for parts in zip(*mapped, strict=True)]

    counts = Counter()
    for part in ray.get(reduced):
        assert not counts.keys() & part.keys()  # no word is with two reducers
        counts.update(part)
    assert counts.total() == DOCUMENTS * WORDS
    top = counts.most_common(5)
    for word, count in top:
        print(f"{word:5} {count:6}  {'█' * round(40 * count / top[0][1])}")
    print(f"{len(counts)} words, {counts.total()} in all; most frequent: {top[0][0]}")


if __name__ == "__main__":
    main()

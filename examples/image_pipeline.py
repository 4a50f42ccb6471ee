"""Blur, sharpen and shrink a batch of pictures, here and in tasks, with a chart of both.

The pictures are made, not downloaded. They are put into the object store once; tasks read them
there without a copy. Needs numpy and Pillow; with matplotlib the chart is also written to a file.
"""

import os
import time

import numpy as np
import oxiray as ray
from PIL import Image, ImageFilter

PICTURES = 8
WIDTH, HEIGHT = 1600, 1200


def paint(seed):
    """Soft circles over a gradient."""
    random = np.random.default_rng(seed)
    y, x = np.mgrid[0:HEIGHT:4, 0:WIDTH:4]
    picture = np.stack([x / WIDTH, y / HEIGHT, np.full(x.shape, random.random())], axis=-1)
    for _ in range(6):
        cx, cy, radius = random.uniform((0, 0, 50), (WIDTH, HEIGHT, 300))
        inside = 1 / (1 + np.exp((np.hypot(x - cx, y - cy) - radius) / 20))
        picture += inside[..., None] * (random.random(3) - picture)
    small = Image.fromarray((255 * picture).clip(0, 255).astype(np.uint8))
    return np.asarray(small.resize((WIDTH, HEIGHT)))


def process(pixels):
    """The pipeline: what is returned is small, and says whether two runs did the same."""
    image = Image.fromarray(pixels)
    image = image.filter(ImageFilter.GaussianBlur(3)).filter(ImageFilter.UnsharpMask(4))
    image.thumbnail((64, 64))
    return np.asarray(image)


@ray.remote
def process_remote(pixels):
    return process(pixels)


def timed(function):
    begin = time.perf_counter()
    result = function()
    return result, time.perf_counter() - begin


def save_chart(times):
    try:
        import matplotlib.pyplot as plt
    except ImportError:
        return
    figure, axes = plt.subplots(figsize=(6, 2), layout="constrained")
    axes.barh(list(times), list(times.values()))
    axes.set_xlabel(f"seconds for {PICTURES} pictures")
    figure.savefig("image_pipeline.png")
    print("chart written to image_pipeline.png")


def main():
    ray.init(logging_level="warning")
    pictures = [paint(seed) for seed in range(PICTURES)]
    refs = [ray.put(picture) for picture in pictures]

    before, serial = timed(lambda: [process(picture) for picture in pictures])
    after, parallel = timed(lambda: ray.get([process_remote.remote(ref) for ref in refs]))
    same = all(map(np.array_equal, before, after))

    times = {"before": serial, f"{os.cpu_count()} cores": parallel}
    for name, took in times.items():
        print(f"{name:8} {took:6.2f} s  {'█' * round(40 * took / serial)}")
    save_chart(times)
    size = f"{after[0].shape[1]}x{after[0].shape[0]}"
    print(f"{PICTURES} thumbnails of {size}, {'the same' if same else 'not the same'} both ways")


if __name__ == "__main__":
    main()

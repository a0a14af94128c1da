"""Captions for test images with beam search."""
import time

import torch
import torch.nn.functional as F
from torch import nn

BOS, EOS = 1, 2


class ImageEncoder(nn.Module):
    def __init__(self, dim):
        super().__init__()
        layers, c_in = [], 3
        for c in (24, 48, 96, dim):
            layers += [nn.Conv2d(c_in, c, 3, stride=2, padding=1), nn.BatchNorm2d(c), nn.ReLU(),
                       nn.Conv2d(c, c, 3, padding=1), nn.BatchNorm2d(c), nn.ReLU()]
            c_in = c
        self.net = nn.Sequential(*layers)

    def forward(self, images):
        return self.net(images).flatten(2).transpose(1, 2)


class Captioner(nn.Module):
    def __init__(self, vocab=3000, dim=128, max_len=24):
        super().__init__()
        self.encoder = ImageEncoder(dim)
        self.embed = nn.Embedding(vocab, dim)
        self.pos = nn.Embedding(max_len, dim)
        layer = nn.TransformerDecoderLayer(dim, 4, 4 * dim, dropout=0.1, batch_first=True)
        self.decoder = nn.TransformerDecoder(layer, 2)
        self.out = nn.Linear(dim, vocab)

    def decode(self, memory, tokens):
        x = self.embed(tokens) + self.pos(torch.arange(tokens.shape[1]))
        mask = nn.Transformer.generate_square_subsequent_mask(tokens.shape[1])
        return self.out(self.decoder(x, memory, tgt_mask=mask))


@torch.no_grad()
def beam_search(model, image, beam=3, max_len=16):
    memory = model.encoder(image.unsqueeze(0)).expand(beam, -1, -1)
    tokens = torch.full((beam, 1), BOS)
    scores = torch.tensor([0.0] + [-1e9] * (beam - 1))
    done = torch.zeros(beam, dtype=torch.bool)
    for _ in range(max_len):
        logits = model.decode(memory, tokens)[:, -1]
        logp = F.log_softmax(logits, dim=-1)
        logp[done] = -1e9
        logp[done, EOS] = 0.0
        total = (scores.unsqueeze(1) + logp).flatten()
        scores, flat = total.topk(beam)
        parent, word = flat // logp.shape[1], flat % logp.shape[1]
        tokens = torch.cat([tokens[parent], word.unsqueeze(1)], dim=1)
        done = done[parent] | (word == EOS)
        if done.all():
            break
    return tokens[scores.argmax()]


def main():
    torch.manual_seed(0)
    model = Captioner().eval()
    test_images = torch.rand(28, 3, 128, 128)
    captions, start = [], time.time()
    for n, image in enumerate(test_images, 1):
        captions.append(beam_search(model, image).tolist())
        if n % 7 == 0:
            print(f"{n}/{len(test_images)} images, {(time.time() - start) / n:.3f} s per image")
    print("first caption:", captions[0])


if __name__ == "__main__":
    main()

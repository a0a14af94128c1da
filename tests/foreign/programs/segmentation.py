"""MONAI's U-Net with a Dice loss and metric; inference by a sliding window."""

import sys

import torch
from monai.data import create_test_image_2d
from monai.inferers import sliding_window_inference
from monai.losses import DiceLoss
from monai.metrics import DiceMetric
from monai.networks.nets import UNet


def model() -> UNet:
    return UNet(spatial_dims=2, in_channels=1, out_channels=1, channels=(8, 16), strides=(2,), num_res_units=1)


def pictures(count: int) -> tuple[torch.Tensor, torch.Tensor]:
    pairs = [create_test_image_2d(48, 48, num_seg_classes=1, rad_max=12) for _ in range(count)]
    image, mask = (torch.as_tensor([pair[side].tolist() for pair in pairs])[:, None].float() for side in (0, 1))
    return image, mask


def train() -> None:
    net, loss_of = model().train(), DiceLoss(sigmoid=True)
    optimizer = torch.optim.Adam(net.parameters(), 1e-3)
    image, mask = pictures(8)
    for step in range(8):
        at = slice(step % 2 * 4, step % 2 * 4 + 4)
        loss = loss_of(net(image[at]), mask[at])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


@torch.no_grad()
def infer() -> None:
    net, metric = model().eval(), DiceMetric()
    image, mask = pictures(2)
    for _ in range(4):
        guess = sliding_window_inference(image, (32, 32), 4, net)
        metric((guess > 0).float(), mask)
    print(metric.aggregate().item())


if __name__ == "__main__":
    {"train": train, "infer": infer}[sys.argv[1]]()

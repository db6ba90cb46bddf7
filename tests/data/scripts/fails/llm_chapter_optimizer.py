import torch
from model import Net

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")

checkpoint = torch.load("train_cuda.pth", weights_only=True)

model = Net()
model.load_state_dict(checkpoint["model"])

optimizer = torch.optim.AdamW(model.parameters(), lr=0.0005, weight_decay=0.1)
optimizer.load_state_dict(checkpoint["optimizer"])
model.to(device)
model.train()


def calc_loss(input_batch, target_batch, model, device):
    input_batch, target_batch = input_batch.to(device), target_batch.to(device)
    logits = model(input_batch)
    return torch.nn.functional.cross_entropy(logits, target_batch)


def train(model, optimizer, device, num_epochs):
    for epoch in range(num_epochs):
        optimizer.zero_grad()
        loss = calc_loss(torch.randn(3, 4), torch.tensor([0, 1, 1]), model, device)
        loss.backward()
        optimizer.step()


train(model, optimizer, device, 2)

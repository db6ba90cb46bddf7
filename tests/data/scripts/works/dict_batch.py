import torch
from torch.utils.data import DataLoader
from tqdm import tqdm
from model import Net

device = torch.device("cuda") if torch.cuda.is_available() else torch.device("cpu")
data = [{"x": torch.randn(4), "labels": torch.tensor(1)} for _ in range(4)]
loader = DataLoader(data, shuffle=True, batch_size=2)
model = Net()
model.load_state_dict(torch.load("sd_cuda.pth", map_location="cpu"))
model.to(device)
model.eval()
for batch in tqdm(loader):
    batch = {k: v.to(device) for k, v in batch.items()}
    with torch.no_grad():
        outputs = model(**{"x": batch["x"]})
    predictions = torch.argmax(outputs, dim=-1)
    correct = (predictions == batch["labels"]).sum()

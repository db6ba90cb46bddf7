import torch

def main():
    model = torch.load("sd_cpu.pth", map_location=torch.device("cpu"))
    model.eval()
    x = torch.rand(1, 4)
    print(model(x))

main()

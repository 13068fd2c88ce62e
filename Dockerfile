# docker build -t loopsched . && docker run --rm -v "$PWD:/work" loopsched search resnet50 -a h100
FROM python:3.13-slim
COPY . /src
# Kernels are compiled for this image once, not in every container.
RUN pip install --no-cache-dir '/src[all]' \
    && rm -rf /src \
    && XDG_CACHE_HOME=/cache loopsched search gemm:m=64,n=64,k=64 \
    && chmod -R a+rwX /cache
ENV XDG_CACHE_HOME=/cache
WORKDIR /work
ENTRYPOINT ["loopsched"]
